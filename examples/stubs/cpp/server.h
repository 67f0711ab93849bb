// Serves a hook: TLS with the engine's certificate required, the health service, and errors as google.rpc.Status.
// The variables are those of the SDKs.
#pragma once
#include <google/protobuf/duration.pb.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

// Failure is an error with details, which Hookloop reads from the trailer grpc-status-details-bin. If seconds is not 0,
// Hookloop calls again after that time.
struct Failure {
  grpc::Status status;

  Failure(grpc::StatusCode code, const std::string& reason, const std::string& message, int seconds = 0) {
    google::rpc::Status details;
    details.set_code(code);
    details.set_message(message);
    google::rpc::ErrorInfo info;
    info.set_reason(reason);
    info.set_domain("website.example.com");
    details.add_details()->PackFrom(info);
    if (seconds > 0) {
      google::rpc::RetryInfo retry;
      retry.mutable_retry_delay()->set_seconds(seconds);
      details.add_details()->PackFrom(retry);
    }
    status = grpc::Status(code, message, details.SerializeAsString());
  }
};

// Answer runs a function, and returns its Failure or exception as a status.
template <typename Function>
grpc::Status Answer(Function function) {
  try {
    function();
    return grpc::Status::OK;
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const std::exception& e) {
    return Failure(grpc::INTERNAL, "HookFailed", e.what()).status;
  }
}

inline std::string Variable(const char* name, const char* otherwise = nullptr) {
  const char* value = std::getenv(name);
  if (!value) value = otherwise;
  if (!value) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

// File reads the file that a variable names.
inline std::string File(const char* variable) {
  std::ifstream file(Variable(variable), std::ios::binary);
  if (!file) throw std::runtime_error(std::string(variable) + ": cannot read " + Variable(variable));
  return {std::istreambuf_iterator<char>(file), {}};
}

// Serve serves until SIGTERM, and then lets running calls finish for 5 seconds. Clients that watch the health service
// make it wait that long. The certificates are read once: restart the hook after a renewal.
inline void Serve(grpc::Service& hook, const char* name) {
  sigset_t signals; // blocked before gRPC starts its threads, so that only sigwait receives them
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = File("HOOKLOOP_HOOK_CLIENT_CA");
  tls.pem_key_cert_pairs.push_back({File("HOOKLOOP_HOOK_TLS_KEY"), File("HOOKLOOP_HOOK_TLS_CERT")});
  const std::string address = Variable("HOOKLOOP_HOOK_LISTEN", "127.0.0.1:9443");
  int port = 0;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(16 << 20); // the default is 4 MiB, the engine sends up to 16
  builder.AddListeningPort(address, grpc::SslServerCredentials(tls), &port).RegisterService(&hook);
  auto server = builder.BuildAndStart();
  if (!server || port == 0) throw std::runtime_error("cannot listen on " + address);
  std::cout << "listening on " << address.substr(0, address.rfind(':')) << ":" << port << std::endl;
  // Without this, the health service knows only the server as a whole.
  server->GetHealthCheckService()->SetServingStatus(name, true);
  int signal;
  sigwait(&signals, &signal);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
}
