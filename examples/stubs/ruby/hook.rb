# The hook of the website controller from generated stubs: a Website becomes a ConfigMap, a Deployment and a Service.
require 'digest'
require 'json'
require 'hookloop/composite/v1/composite_services_pb'
require_relative 'server'

class Website < Hookloop::Composite::V1::CompositeHookService::Service
  include Hookloop::Composite::V1
  include Hookloop::Hook::V1

  def sync(request, call)
    fail_with(:DEADLINE_EXCEEDED, 'TooLate', 'the deadline has passed') if call.deadline && call.deadline < Time.now
    name, spec = request.parent.name, decode(request.parent)['spec']
    image, replicas = spec['image'] || 'nginx:1.29-alpine', spec['replicas']
    fail_with(:INVALID_ARGUMENT, 'InvalidImage', "spec.image: got \"#{image}\", expected no space") if image[' ']
    fail_with(:UNAVAILABLE, 'ImagePending', 'spec.image is not built yet', retry_after: 1) if image == 'pending'
    observed = request.children.find { |group| group.kind == 'Deployment' }.objects.find { |o| o.name == name }
    up = observed && decode(observed).dig('status', 'readyReplicas') || 0
    ready = !observed.nil? && up >= replicas
    labels, pages = { app: name }, spec['html'].sort.map { |file, page| "#{file}\0#{page}\0" }.join
    meta = { name: name, labels: labels }
    mounts = [{ name: 'pages', mountPath: '/usr/share/nginx/html' }]
    pod = { containers: [{ name: 'web', image: image, ports: [{ containerPort: 80 }], volumeMounts: mounts }],
            volumes: [{ name: 'pages', configMap: { name: name } }] }
    pod[:tolerations] = [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute',
                           tolerationSeconds: spec['unreachableSeconds'] }] if spec['unreachableSeconds']
    annotations = { 'website.example.com/pages' => Digest::SHA256.hexdigest(pages) }
    config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta, data: spec['html'] }
    servers = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: meta,
                spec: { replicas: replicas, selector: { matchLabels: labels },
                        template: { metadata: { labels: labels, annotations: annotations }, spec: pod } } }
    service = { apiVersion: 'v1', kind: 'Service', metadata: meta, spec: { selector: labels, ports: [{ port: 80 }] } }
    SyncResponse.new(
      status: JSON.generate({ url: "http://#{name}.#{request.parent.namespace}.svc", replicas: replicas, ready: up }).b,
      children: [desired(config), desired(servers, config), desired(service, servers)],
      details: ResponseDetails.new(conditions: [Condition.new(
        type: 'Ready', status: ready ? :CONDITION_STATUS_TRUE : :CONDITION_STATUS_FALSE,
        reason: ready ? 'AllUp' : 'Starting', message: "#{up} of #{replicas} servers are ready")]))
  end

  # Fields of type bytes are binary strings: they are read as UTF-8, and text is assigned as binary.
  def decode(object) = JSON.parse(object.body.dup.force_encoding('UTF-8'))

  def desired(object, *others)
    after = others.map { |o| Dependency.new(api_version: o[:apiVersion], kind: o[:kind], name: o[:metadata][:name]) }
    DesiredObject.new(encoding: :ENCODING_JSON, body: JSON.generate(object).b, depends_on: after)
  end
end

serve(Website.new) # with TLS, health, errors and traces: server.rb
