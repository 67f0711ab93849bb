//go:build otlp

package main

import (
	"context"
	"log"

	"github.com/hookloop/hookloop/sdk/go/otlp"
)

// With the build tag otlp the hook exports its spans, as the OTEL_* environment describes.
func init() {
	if err := otlp.Setup(context.Background()); err != nil {
		log.Fatal(err)
	}
}
