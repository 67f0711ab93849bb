# Serves a hook: TLS with the engine's certificate required, the health service, and traces. The variables
# are those of the SDKs.
require 'grpc/health/checker'
require_relative 'failures'
require_relative 'trace'

# credentials requires a client certificate of the authority in HOOKLOOP_HOOK_CLIENT_CA. The files are read
# once: restart the hook after a renewal.
def credentials
  ca, key, cert = %w[CLIENT_CA TLS_KEY TLS_CERT].map { |name| File.read(ENV.fetch("HOOKLOOP_HOOK_#{name}")) }
  GRPC::Core::ServerCredentials.new(ca, [{ private_key: key, cert_chain: cert }], true)
end

def serve(hook)
  health = Grpc::Health::Checker.new
  health.set_status_for_services(:SERVING, '', hook.class.service_name)
  # gRPC accepts requests of 4 MiB by default, the engine sends up to 16.
  limits = { 'grpc.max_receive_message_length' => 16 << 20 }
  server = GRPC::RpcServer.new(interceptors: [Failures.new, Trace.new], server_args: limits)
  host = ENV.fetch('HOOKLOOP_HOOK_LISTEN', '127.0.0.1:9443')[/.*(?=:)/]
  port = server.add_http2_port(ENV.fetch('HOOKLOOP_HOOK_LISTEN', '127.0.0.1:9443'), credentials)
  [health, hook].each { |service| server.handle(service) }
  puts "listening on #{host}:#{port}"
  $stdout.flush
  server.run_till_terminated_or_interrupted(%w[TERM INT])
end
