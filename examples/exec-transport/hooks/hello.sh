#!/bin/sh
# A hook in shell: it makes a ConfigMap with a greeting for each HelloWorld. It needs jq.
while read -r question; do
  who=$(printf '%s' "$question" | jq -r '.request.parent.spec.who // "World"')
  echo "greeting $who" >&2 # to the log of the engine
  printf '%s' "$question" | jq -c --arg greeting "Hello, $who!" '{
    id: .id,
    response: {
      status: {greeting: $greeting},
      children: [{
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: {name: .request.parent.metadata.name},
        data: {"index.html": $greeting}
      }]
    }
  }'
done
