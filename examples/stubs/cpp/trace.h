// Makes a span of a call, below the engine's span, and exports it over OTLP to OTEL_EXPORTER_OTLP_ENDPOINT. A program
// with OpenTelemetry's library uses that instead.
#pragma once
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"

namespace otlp = opentelemetry::proto::collector::trace::v1;

class Exporter {
 public:
  static Exporter& Get() {
    static Exporter exporter;
    return exporter;
  }

  bool enabled() const { return stub_ != nullptr; }

  // Export sends a span, and does not wait. It drops the span if too many wait for their export.
  void Export(const otlp::Span& span) {
    if (++waiting_ > kLimit) {
      --waiting_;
      std::cerr << "a span was dropped: " << kLimit << " wait for their export" << std::endl;
      return;
    }
    auto call = std::make_shared<Call>();
    auto* spans = call->request.add_resource_spans();
    auto* name = spans->mutable_resource()->add_attributes();
    name->set_key("service.name");
    const char* service = std::getenv("OTEL_SERVICE_NAME");
    name->mutable_value()->set_string_value(service ? service : "website");
    *spans->add_scope_spans()->add_spans() = span;
    call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    stub_->async()->Export(&call->context, &call->request, &call->response, [this, call](const grpc::Status& status) {
      --waiting_;
      if (!status.ok()) std::cerr << "a span was not exported: " << status.error_message() << std::endl;
    });
  }

 private:
  struct Call {
    grpc::ClientContext context;
    otlp::ExportTraceServiceRequest request;
    otlp::ExportTraceServiceResponse response;
  };
  static constexpr int kLimit = 1000;

  Exporter() {
    const char* endpoint = std::getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (!endpoint || !*endpoint) return;
    std::string target = endpoint;
    if (target.rfind("http://", 0) == 0) target.erase(0, 7);
    stub_ = otlp::TraceService::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  }

  std::unique_ptr<otlp::TraceService::Stub> stub_;
  std::atomic<int> waiting_{0};
};

class Trace {
 public:
  // traceparent is version-trace-span-flags in hexadecimal digits; bit 0 of the flags: the trace is recorded.
  Trace(const grpc::ServerContext& context, const std::string& name) {
    const auto found = context.client_metadata().find("traceparent");
    if (!Exporter::Get().enabled() || found == context.client_metadata().end() || found->second.size() < 55) return;
    const std::string value(found->second.data(), found->second.size());
    recorded_ = std::stoi(value.substr(53, 2), nullptr, 16) & 1;
    std::random_device random;
    for (int i = 0; i < 8; i++) span_.mutable_span_id()->push_back(static_cast<char>(random()));
    span_.set_trace_id(Bytes(value.substr(3, 32)));
    span_.set_parent_span_id(Bytes(value.substr(36, 16)));
    span_.set_name(name);
    span_.set_kind(2);
    span_.set_start_time_unix_nano(Now());
  }

  // End ends the span with the call's status, and returns that.
  grpc::Status End(const grpc::Status& status) {
    if (!recorded_) return status;
    if (!status.ok()) {
      span_.mutable_status()->set_code(2);
      span_.mutable_status()->set_message(status.error_message());
    }
    span_.set_end_time_unix_nano(Now());
    Exporter::Get().Export(span_);
    return status;
  }

 private:
  static std::string Bytes(const std::string& digits) {
    std::string bytes;
    for (size_t i = 0; i < digits.size(); i += 2)
      bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    return bytes;
  }

  static uint64_t Now() {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  bool recorded_ = false;
  otlp::Span span_;
};
