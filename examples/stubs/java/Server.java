// Serves a hook: TLS with the engine's certificate required, the health service, errors as google.rpc.Status, and
// traces. The variables are those of the SDKs.
package website;

import com.google.protobuf.*;
import com.google.rpc.*;
import com.grpc.health.v1.*;
import com.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.*;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.io.File;
import java.net.InetSocketAddress;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

final class Server {
  // run serves until SIGTERM, and then lets running calls finish for 10 seconds. The certificates are read once:
  // restart the hook after a renewal. A key must be in the format PKCS#8 ("BEGIN PRIVATE KEY").
  static void run(BindableService hook) throws Exception {
    var tls = TlsServerCredentials.newBuilder().keyManager(file("TLS_CERT"), file("TLS_KEY"))
        .trustManager(file("CLIENT_CA")).clientAuth(TlsServerCredentials.ClientAuth.REQUIRE).build();
    var listen = Optional.ofNullable(System.getenv("HOOKLOOP_HOOK_LISTEN")).orElse("127.0.0.1:9443");
    var health = new Health();
    int colon = listen.lastIndexOf(':');
    var address = new InetSocketAddress(listen.substring(0, colon), Integer.parseInt(listen.substring(colon + 1)));
    var server = NettyServerBuilder.forAddress(address, tls)
        .maxInboundMessageSize(16 << 20) // gRPC accepts 4 MiB by default, the engine sends up to 16
        .addService(health).addService(ServerInterceptors.intercept(hook, new Trace())).build().start();
    System.out.println("listening on " + address.getHostString() + ":" + server.getPort());
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      health.stop();
      try {
        server.shutdown().awaitTermination(10, TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        server.shutdownNow();
      }
    }));
    server.awaitTermination();
  }

  private static File file(String name) {
    var path = System.getenv("HOOKLOOP_HOOK_" + name);
    if (path == null) throw new IllegalArgumentException("HOOKLOOP_HOOK_" + name + " is not set; expected a file");
    return new File(path);
  }

  static boolean deadlinePassed() {
    var deadline = Context.current().getDeadline();
    return deadline != null && deadline.isExpired();
  }

  // respond sends a result or an error. A status that a service's method throws would arrive as UNKNOWN.
  static <T> void respond(StreamObserver<T> responses, Callable<T> result) {
    try {
      responses.onNext(result.call());
      responses.onCompleted();
    } catch (StatusRuntimeException e) {
      responses.onError(e);
    } catch (Exception e) {
      e.printStackTrace();
      responses.onError(failure(io.grpc.Status.Code.INTERNAL, "HookFailed", "the hook failed: " + e, 0));
    }
  }

  // failure is an error with details, which Hookloop reads from the trailer grpc-status-details-bin. If seconds is not
  // 0, Hookloop calls again after that time.
  static StatusRuntimeException failure(io.grpc.Status.Code code, String reason, String message, int seconds) {
    var status = com.google.rpc.Status.newBuilder().setCode(code.value()).setMessage(message)
        .addDetails(Any.pack(ErrorInfo.newBuilder().setReason(reason).setDomain("website.example.com").build()));
    var delay = Duration.newBuilder().setSeconds(seconds);
    if (seconds > 0) status.addDetails(Any.pack(RetryInfo.newBuilder().setRetryDelay(delay).build()));
    return StatusProto.toStatusRuntimeException(status.build());
  }

  // Health is grpc.health.v1.Health. With Maven, the package grpc-services has it.
  private static final class Health extends HealthGrpc.HealthImplBase {
    private static final HealthCheckResponse SERVING =
        HealthCheckResponse.newBuilder().setStatus(ServingStatus.SERVING).build();

    @Override public void check(HealthCheckRequest request, StreamObserver<HealthCheckResponse> responses) {
      respond(responses, () -> SERVING);
    }

    private final Set<StreamObserver<HealthCheckResponse>> watchers = new HashSet<>();

    // watch keeps the stream open until the server stops or the client leaves.
    @Override public synchronized void watch(
        HealthCheckRequest request, StreamObserver<HealthCheckResponse> responses) {
      responses.onNext(SERVING);
      watchers.add(responses);
      ((ServerCallStreamObserver<?>) responses).setOnCancelHandler(() -> forget(responses));
    }

    private synchronized void forget(StreamObserver<HealthCheckResponse> responses) { watchers.remove(responses); }

    synchronized void stop() {
      watchers.forEach(StreamObserver::onCompleted);
      watchers.clear();
    }
  }
}
