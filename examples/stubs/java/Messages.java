// Converts between JSON and the messages.
package website;

import com.google.gson.*;
import com.google.protobuf.ByteString;
import io.github.hookloop.hook.v1.*;
import java.nio.charset.StandardCharsets;
import java.security.*;
import java.util.*;

final class Messages {
  private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().create();

  // decode keeps the digits of integers: JsonParser reads a number as text. Gson.fromJson into a Map makes doubles.
  static JsonObject decode(ObservedObject object) {
    return JsonParser.parseString(object.getBody().toStringUtf8()).getAsJsonObject();
  }

  // encode makes a ByteString in UTF-8, whatever the platform's charset is.
  static ByteString encode(Map<String, ?> json) { return ByteString.copyFromUtf8(GSON.toJson(json)); }

  // child is a desired object, created after the others.
  @SafeVarargs static DesiredObject child(Map<String, ?> object, Map<String, ?>... others) {
    var child = DesiredObject.newBuilder().setEncoding(Encoding.ENCODING_JSON).setBody(encode(object));
    for (var other : others)
      child.addDependsOn(Dependency.newBuilder().setApiVersion((String) other.get("apiVersion"))
          .setKind((String) other.get("kind")).setName((String) ((Map<?, ?>) other.get("metadata")).get("name")));
    return child.build();
  }

  // digest is a hash of the pages. It is in the Pods' template, so new pages replace the Pods.
  static String digest(JsonObject spec) {
    var pages = new StringBuilder();
    var sorted = new TreeMap<>(spec.getAsJsonObject("html").asMap());
    sorted.forEach((file, page) -> pages.append(file).append('\0').append(page.getAsString()).append('\0'));
    try {
      byte[] bytes = pages.toString().getBytes(StandardCharsets.UTF_8);
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // every Java has SHA-256
    }
  }
}
