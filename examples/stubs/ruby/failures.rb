# Errors as google.rpc.Status.
require 'google/protobuf/well_known_types' # adds Any.pack
require 'google/rpc/error_details_pb'
require 'google/rpc/status_pb'
require 'grpc'

# fail_with ends the call with details, which Hookloop reads from the trailer grpc-status-details-bin. With
# retry_after, Hookloop calls again after that number of seconds.
def fail_with(code, reason, message, retry_after: nil)
  details = [Google::Rpc::ErrorInfo.new(reason: reason, domain: 'website.example.com')]
  details << Google::Rpc::RetryInfo.new(retry_delay: { seconds: retry_after }) if retry_after
  code, details = GRPC::Core::StatusCodes.const_get(code), details.map { |d| Google::Protobuf::Any.pack(d) }
  status = Google::Rpc::Status.new(code: code, message: message, details: details)
  raise GRPC::BadStatus.new(code, message, { 'grpc-status-details-bin' => status.to_proto })
end

# Failures makes INTERNAL of any other exception. gRPC would send UNKNOWN, with the line of code.
class Failures < GRPC::ServerInterceptor
  def request_response(request:, call:, method:)
    yield
  rescue GRPC::BadStatus
    raise
  rescue StandardError => e
    warn e.full_message(highlight: false)
    fail_with(:INTERNAL, 'HookFailed', "#{method.name} failed: #{e.class}")
  end
end
