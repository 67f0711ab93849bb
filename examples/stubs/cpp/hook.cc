// The hook of the website controller from generated stubs: a Website becomes a ConfigMap, a Deployment and a Service.
#include "messages.h"
#include "server.h"
#include "trace.h"

class Website final : public composite::CompositeHookService::Service {
  grpc::Status Sync(grpc::ServerContext* context, const composite::SyncRequest* request,
                    composite::SyncResponse* response) override {
    Trace trace(*context, "hookloop.composite.v1.CompositeHookService/Sync");
    return trace.End(Answer([&] { Respond(*context, *request, *response); }));
  }

  void Respond(grpc::ServerContext& context, const composite::SyncRequest& request, composite::SyncResponse& response) {
    if (context.IsCancelled()) throw Failure(grpc::DEADLINE_EXCEEDED, "TooLate", "the deadline has passed");
    const std::string& name = request.parent().name();
    const json spec = Decode(request.parent()).at("spec");
    const std::string image = spec.value("image", "nginx:1.29-alpine");
    if (image.find(' ') != image.npos)
      throw Failure(grpc::INVALID_ARGUMENT, "InvalidImage", "spec.image: got \"" + image + "\", expected no space");
    if (image == "pending") throw Failure(grpc::UNAVAILABLE, "ImagePending", "spec.image is not built yet", 1);
    const hook::ObservedObject* observed = Find(request.children(), "Deployment", name);
    const int64_t replicas = spec.at("replicas");
    const int64_t up = observed ? Decode(*observed).value(json::json_pointer("/status/readyReplicas"), int64_t{0}) : 0;
    const bool ready = observed && up >= replicas;
    const json labels = {{"app", name}}, meta = {{"name", name}, {"labels", labels}};
    const json mount = {{"name", "pages"}, {"mountPath", "/usr/share/nginx/html"}};
    const json server = {{"name", "web"}, {"image", image}, {"ports", {{{"containerPort", 80}}}},
                         {"volumeMounts", {mount}}};
    json pod = {{"containers", {server}}, {"volumes", {{{"name", "pages"}, {"configMap", {{"name", name}}}}}}};
    if (spec.contains("unreachableSeconds"))
      pod["tolerations"] = {{{"key", "node.kubernetes.io/unreachable"}, {"operator", "Exists"}, {"effect", "NoExecute"},
                             {"tolerationSeconds", spec["unreachableSeconds"]}}};
    const json annotations = {{"website.example.com/pages", Digest(spec.at("html"))}};
    const json pods = {{"metadata", {{"labels", labels}, {"annotations", annotations}}}, {"spec", pod}};
    const json config = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", meta}, {"data", spec.at("html")}};
    const json servers = {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"metadata", meta},
                          {"spec", {{"replicas", replicas}, {"selector", {{"matchLabels", labels}}},
                                    {"template", pods}}}};
    const json service = {{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", meta},
                          {"spec", {{"selector", labels}, {"ports", {{{"port", 80}}}}}}};
    const std::string url = "http://" + name + "." + request.parent().namespace_() + ".svc";
    response.set_status(json{{"url", url}, {"replicas", replicas}, {"ready", up}}.dump());
    AddChild(response, config);
    AddChild(response, servers, &config);
    AddChild(response, service, &servers);
    auto* condition = response.mutable_details()->add_conditions();
    condition->set_type("Ready");
    condition->set_status(ready ? hook::CONDITION_STATUS_TRUE : hook::CONDITION_STATUS_FALSE);
    condition->set_reason(ready ? "AllUp" : "Starting");
    condition->set_message(std::to_string(up) + " of " + std::to_string(replicas) + " servers are ready");
  }
};

int main() {
  Website website;
  Serve(website, composite::CompositeHookService::service_full_name()); // with TLS and health
}
