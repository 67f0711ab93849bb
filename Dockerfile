# The image of "hookloop serve": one static program and the public CA certificates, run as an
# unprivileged user. Build it with "make image", which passes the version.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY gen/go.mod gen/go.sum gen/
COPY internal/protocol/go.mod internal/protocol/go.sum internal/protocol/
COPY sdk/go/go.mod sdk/go/go.sum sdk/go/
RUN go mod download
COPY . .
ARG VERSION=""
ARG COMMIT=""
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" \
    -o /out/hookloop ./cmd/hookloop

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/hookloop /usr/bin/hookloop
# A number, so that the kubelet can verify that it is not root.
USER 65532:65532
EXPOSE 8081 9999
ENTRYPOINT ["/usr/bin/hookloop"]
CMD ["serve"]
