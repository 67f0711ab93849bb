package server

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/act"
	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/discovery"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/report"
	"github.com/hookloop/hookloop/engine/supervisor"
	"github.com/hookloop/hookloop/transports/grpc"
	"github.com/hookloop/hookloop/transports/stack"
	"github.com/hookloop/hookloop/transports/webhook"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// scope names the tracer in spans.
const scope = "github.com/hookloop/hookloop"
