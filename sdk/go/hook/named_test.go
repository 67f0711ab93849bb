package hook_test

import (
	"context"
	"strings"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// answers returns a composite hook with its name in the status.
func answers(name string) hook.Composite {
	return hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
		return &hook.SyncResponse{Status: map[string]string{"by": name}}, nil
	}}
}

// TestOneServerServesSeveralComposites: the name in the request selects the hook.
func TestOneServerServesSeveralComposites(t *testing.T) {
	connection, _ := start(t, hook.ServeOptions{},
		hook.Named("blog", answers("blog")), hook.Named("shop", answers("shop")), hook.Named("shop", hook.Decorator{}))
	client := compositev1.NewCompositeHookServiceClient(connection)
	for _, name := range []string{"blog", "shop"} {
		r := request()
		r.Meta = &hookv1.RequestMeta{Hook: name}
		response, err := client.Sync(t.Context(), r)
		if want := `{"by":"` + name + `"}`; err != nil || string(response.GetStatus()) != want {
			t.Errorf("%s: got %s, %v, expected %s", name, response.GetStatus(), err, want)
		}
	}
	refusals := map[string]string{
		"blgo": `this server has no composite hook "blgo"; it has "blog", "shop"`,
		"": `the request names no hook, and this server has several composite hooks: "blog", "shop"; ` +
			`name one in the field grpc.hook of the controller's spec`,
	}
	for name, want := range refusals {
		r := request()
		r.Meta = &hookv1.RequestMeta{Hook: name}
		_, err := client.Sync(t.Context(), r)
		if got := status.Convert(err); got.Code() != codes.NotFound || got.Message() != want {
			t.Errorf("%q: got %v, expected %s", name, err, want)
		}
	}
	decorators := decoratorv1.NewDecoratorHookServiceClient(connection)
	if _, err := decorators.Sync(t.Context(), &decoratorv1.SyncRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v, expected that the only decorator has no function", err)
	}
}

// TestAHookWithoutANameAnswersRequestsWithoutOne, also beside a hook that has a name.
func TestAHookWithoutANameAnswersRequestsWithoutOne(t *testing.T) {
	client := func(hooks ...hook.Hook) compositev1.CompositeHookServiceClient {
		connection, _ := start(t, hook.ServeOptions{}, hooks...)
		return compositev1.NewCompositeHookServiceClient(connection)
	}
	for what, c := range map[string]compositev1.CompositeHookServiceClient{
		"alone":        client(answers("it")),
		"the only one": client(hook.Named("it", answers("it"))),
		"with another": client(answers("it"), hook.Named("other", answers("other"))),
	} {
		response, err := c.Sync(t.Context(), request())
		if err != nil || string(response.GetStatus()) != `{"by":"it"}` {
			t.Errorf("%s: got %s, %v", what, response.GetStatus(), err)
		}
	}
	r := request()
	r.Meta = &hookv1.RequestMeta{Hook: "it"}
	_, err := client(answers("it")).Sync(t.Context(), r)
	if want := `this server has no composite hook "it"; it has one without a name`; status.Convert(err).Message() != want {
		t.Errorf("got %v, expected %s", err, want)
	}
}

func TestTwoHooksWithTheSameNameAreAnError(t *testing.T) {
	for want, hooks := range map[string][]hook.Hook{
		`two composite hooks have the name "shop", expected different ones`: {
			hook.Named("shop", answers("a")), hook.Named("shop", answers("b")),
		},
		"two composite hooks have no name, expected hook.Named for all but one": {answers("a"), answers("b")},
		`the name of a composite hook is "a b", expected at most 63 letters`:    {hook.Named("a b", answers("a"))},
	} {
		err := hook.Serve(t.Context(), hook.ServeOptions{Listen: "127.0.0.1:0"}, hooks...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Serve: got %v, expected %s", err, want)
		}
		if err := hook.Register(grpc.NewServer(), hooks...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Register: got %v, expected %s", err, want)
		}
	}
}

// TestAFeatureThatTheEngineDoesNotHonourIsRefused: the hook does not send half a response.
func TestAFeatureThatTheEngineDoesNotHonourIsRefused(t *testing.T) {
	h := hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
		child := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "a"}}
		return &hook.SyncResponse{Children: []hook.Child{{Object: child, DependsOn: []hook.Dependency{{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "a",
		}}}}}, nil
	}}
	client := serve(t, h)
	r := request()
	r.Meta = &hookv1.RequestMeta{EngineVersion: "v0.0.9", Features: []string{"conditions"}}
	_, err := client.Sync(t.Context(), r)
	want := `the response uses the feature "depends_on", which the engine v0.0.9 does not honour; it honours conditions`
	if got := status.Convert(err); got.Code() != codes.FailedPrecondition || got.Message() != want {
		t.Errorf("got %v, expected %s", err, want)
	}
	r.Meta.Features = nil // as of an engine that is older than all features
	_, err = client.Sync(t.Context(), r)
	want = `the response uses the feature "depends_on", which the engine v0.0.9 does not honour; it honours none`
	if got := status.Convert(err); got.Code() != codes.FailedPrecondition || got.Message() != want {
		t.Errorf("no features: got %v, expected %s", err, want)
	}
	r.Meta.Features = []string{"conditions", "depends_on"}
	response, err := client.Sync(t.Context(), r)
	if got := response.GetMeta().GetFeatures(); err != nil || len(got) != 1 || got[0] != "depends_on" {
		t.Errorf("got the features %v, %v, expected depends_on", got, err)
	}
}

// TestNamesAndFeaturesOnAStream: the name is in each request, the features are in Hello alone.
func TestNamesAndFeaturesOnAStream(t *testing.T) {
	events := hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
		return &hook.SyncResponse{Events: []hook.Event{{Reason: "Seen"}}}, nil
	}}
	connection, _ := start(t, hook.ServeOptions{}, hook.Named("blog", answers("blog")), hook.Named("shop", events))
	ask := func(name string, features ...string) session.Outcome {
		engine := session.NewEngine(session.EngineConfig[*thing]{
			SessionID: name + strings.Join(features, ""), Build: "v0.0.9", Features: features,
			Encode: func(o *thing) *hookv1.ObservedObject { return message("v1", "ConfigMap", "", o.name) },
		})
		e := hello(t, connection, engine)
		question := questionAbout("parent")
		question.Envelope = &compositev1.SyncRequest{Meta: &hookv1.RequestMeta{Hook: name}}
		engine.Ask(question)
		e.send()
		m, err := e.stream.Recv()
		if err == nil {
			_, err = engine.Receive(m)
		}
		outcomes := engine.Outcomes()
		if err != nil || len(outcomes) != 1 {
			t.Fatalf("%s: got %v, %v, expected an outcome", name, outcomes, err)
		}
		return outcomes[0]
	}
	blog, _ := ask("blog").Response.(*compositev1.SyncResponse)
	if string(blog.GetStatus()) != `{"by":"blog"}` {
		t.Errorf("blog: got %v", blog)
	}
	shop, _ := ask("shop", "events").Response.(*compositev1.SyncResponse)
	if got := shop.GetMeta().GetFeatures(); len(got) != 1 || got[0] != "events" {
		t.Errorf("shop: got the features %v, expected events", got)
	}
	refusals := map[string]session.Outcome{
		`this server has no composite hook "blgo"; it has "blog", "shop"`: ask("blgo"),
		`the response uses the feature "events", which the engine v0.0.9 does not honour; ` +
			`it honours ready`: ask("shop", "ready"),
		`the response uses the feature "events", which the engine v0.0.9 does not honour; ` +
			`it honours none`: ask("shop"),
	}
	for want, got := range refusals {
		if got.Refused.GetMessage() != want {
			t.Errorf("got %v, expected %s", got.Refused, want)
		}
	}
}
