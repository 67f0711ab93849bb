// The hook of the website controller from generated stubs: a Website becomes a ConfigMap, a Deployment and a Service.
package website;

import static website.Messages.*;
import static website.Server.*;

import com.google.gson.*;
import io.github.hookloop.composite.v1.*;
import io.github.hookloop.hook.v1.*;
import io.grpc.Status.Code;
import io.grpc.stub.StreamObserver;
import java.util.*;

public final class Hook extends CompositeHookServiceGrpc.CompositeHookServiceImplBase {
  public static void main(String[] args) throws Exception { run(new Hook()); } // with TLS, health and traces

  @Override public void sync(SyncRequest request, StreamObserver<SyncResponse> responses) {
    respond(responses, () -> desired(request));
  }

  private SyncResponse desired(SyncRequest request) {
    if (deadlinePassed()) throw failure(Code.DEADLINE_EXCEEDED, "TooLate", "the deadline has passed", 0);
    String name = request.getParent().getName(), namespace = request.getParent().getNamespace();
    JsonObject spec = decode(request.getParent()).getAsJsonObject("spec");
    String image = spec.has("image") ? spec.get("image").getAsString() : "nginx:1.29-alpine";
    if (image.contains(" ")) throw failure(Code.INVALID_ARGUMENT, "InvalidImage", "spec.image: expected no space", 0);
    if (image.equals("pending")) throw failure(Code.UNAVAILABLE, "ImagePending", "spec.image is not built yet", 1);
    var observed = request.getChildrenList().stream().filter(group -> group.getKind().equals("Deployment"))
        .flatMap(group -> group.getObjectsList().stream()).filter(o -> o.getName().equals(name)).findFirst();
    var status = observed.map(o -> decode(o).getAsJsonObject("status"));
    int up = status.map(s -> s.get("readyReplicas")).map(JsonElement::getAsInt).orElse(0);
    int replicas = spec.get("replicas").getAsInt();
    boolean ready = observed.isPresent() && up >= replicas;
    var labels = Map.of("app", name);
    var meta = Map.of("name", name, "labels", labels);
    var mounts = List.of(Map.of("name", "pages", "mountPath", "/usr/share/nginx/html"));
    var ports = List.of(Map.of("containerPort", 80));
    var pod = new HashMap<>(Map.of("volumes", List.of(Map.of("name", "pages", "configMap", Map.of("name", name))),
        "containers", List.of(Map.of("name", "web", "image", image, "ports", ports, "volumeMounts", mounts))));
    if (spec.has("unreachableSeconds")) pod.put("tolerations", List.of(Map.of("key", "node.kubernetes.io/unreachable",
        "operator", "Exists", "effect", "NoExecute", "tolerationSeconds", spec.get("unreachableSeconds"))));
    var podMeta = Map.of("labels", labels, "annotations", Map.of("website.example.com/pages", digest(spec)));
    var template = Map.of("metadata", podMeta, "spec", pod);
    var scale = Map.of("replicas", replicas, "selector", Map.of("matchLabels", labels), "template", template);
    var access = Map.of("selector", labels, "ports", List.of(Map.of("port", 80)));
    var config = Map.of("apiVersion", "v1", "kind", "ConfigMap", "metadata", meta, "data", spec.get("html"));
    var servers = Map.of("apiVersion", "apps/v1", "kind", "Deployment", "metadata", meta, "spec", scale);
    var service = Map.of("apiVersion", "v1", "kind", "Service", "metadata", meta, "spec", access);
    var url = "http://" + name + "." + namespace + ".svc";
    return SyncResponse.newBuilder().setStatus(encode(Map.of("url", url, "replicas", replicas, "ready", up)))
        .addChildren(child(config)).addChildren(child(servers, config)).addChildren(child(service, servers))
        .setDetails(ResponseDetails.newBuilder().addConditions(Condition.newBuilder().setType("Ready")
            .setStatus(ready ? ConditionStatus.CONDITION_STATUS_TRUE : ConditionStatus.CONDITION_STATUS_FALSE)
            .setReason(ready ? "AllUp" : "Starting")
            .setMessage(up + " of " + replicas + " servers are ready"))).build();
  }
}
