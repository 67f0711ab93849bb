package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/filewatch"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/sleep"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// Gateway says where the hook of an intercept dials in, and as whom.
type Gateway struct {
	// Address is host:port. CAFile and ServerName verify the gateway's certificate; if they are empty,
	// the system's authorities and the host of the address are used.
	Address, CAFile, ServerName string
	// ServiceAccount is the caller, as NAMESPACE/NAME. The session makes a token for it, with this
	// Audience.
	ServiceAccount, Audience string
	// Namespace, Name and Labels choose the parents to intercept. If they are empty, all parents are
	// chosen.
	Namespace, Name, Labels string
}

const (
	// tokenSeconds is how long a token lives. It is renewed after half of that.
	tokenSeconds = 3600
	renewAfter   = tokenSeconds / 2 * time.Second
	// retryAfter is how long to wait after a failed renewal.
	retryAfter = time.Minute
)

// target names the controller to intercept.
type target struct {
	kind     hook.Descriptor
	name     string
	resource schema.GroupVersionResource
}

// parseTarget parses composite/web.
func parseTarget(text string) (target, error) {
	short, name, _ := strings.Cut(text, "/")
	for _, k := range hook.Descriptors() {
		if name != "" && (short == string(k.ControllerKind) || strings.EqualFold(short, k.Declared)) {
			return target{k, name, v1alpha1.GroupVersion.WithResource(k.Plural)}, nil
		}
	}
	return target{}, usagef("--intercept: got %q, expected KIND/NAME such as composite/web", text)
}

// intercept runs a session for a controller that runs in the cluster. The engine there calls this
// session's hook for the chosen parents.
func (s *session) intercept(ctx context.Context) error {
	t, err := parseTarget(s.Intercept)
	if err != nil {
		return err
	}
	namespace, account, found := strings.Cut(s.Gateway.ServiceAccount, "/")
	switch {
	case len(s.Command) == 0:
		return usagef("--intercept: got no command, expected the hook's command after --")
	case !found || namespace == "" || account == "":
		return usagef("--service-account: got %q, expected NAMESPACE/NAME", s.Gateway.ServiceAccount)
	}
	s.cluster, err = connect(ctx, s.Options)
	if err != nil {
		return err
	}
	s.print.notef("cluster %q at %s", s.cluster.context, s.cluster.config.Host)
	if err := s.checkTarget(ctx, t); err != nil {
		return err
	}
	if err := s.checkGateway(ctx); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hookloop-dev-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	tokenFile := filepath.Join(dir, "token")
	if err := errors.Join(
		s.checkRight(ctx, t, namespace, account), s.writeToken(ctx, namespace, account, tokenFile),
	); err != nil {
		return err
	}
	s.env = s.Gateway.env(t, tokenFile)
	defer s.stopHook()
	if err := s.startHook(ctx); err != nil {
		return err
	}
	return s.runIntercept(ctx, t, func(ctx context.Context) error {
		return s.writeToken(ctx, namespace, account, tokenFile)
	})
}

// env returns the variables with which the SDKs dial in.
func (g *Gateway) env(t target, tokenFile string) []string {
	env := []string{
		"HOOKLOOP_HOOK_ATTACH=" + g.Address, "HOOKLOOP_HOOK_TOKEN_FILE=" + tokenFile,
		"HOOKLOOP_HOOK_INTERCEPT=" + t.kind.Declared + "/" + t.name,
	}
	for name, value := range map[string]string{
		"CA_FILE": g.CAFile, "SERVER_NAME": g.ServerName, "NAMESPACE": g.Namespace, "NAME": g.Name, "LABELS": g.Labels,
	} {
		if value != "" {
			env = append(env, "HOOKLOOP_HOOK_"+name+"="+value)
		}
	}
	return env
}

// checkTarget checks that the controller exists.
func (s *session) checkTarget(ctx context.Context, t target) error {
	_, err := s.cluster.client.Resource(t.resource).Get(ctx, t.name, metav1.GetOptions{})
	switch {
	case err == nil, apierrors.IsForbidden(err): // the gateway knows
		return nil
	case !apierrors.IsNotFound(err):
		return err
	}
	list, err := s.cluster.client.Resource(t.resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("--intercept: the cluster has no %s %q", t.kind.Declared, t.name)
	}
	var names []string
	for _, o := range list.Items {
		names = append(names, displayName(o.GetKind(), o.GetName()))
	}
	return fmt.Errorf("--intercept: the cluster has no %s %q, expected one of: %s", t.kind.Declared, t.name,
		strings.Join(names, ", "))
}

// checkRight returns an error if the ServiceAccount may not intercept. If the user may not ask, the
// gateway will decide.
func (s *session) checkRight(ctx context.Context, t target, namespace, account string) error {
	user := "system:serviceaccount:" + namespace + ":" + account
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   user,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "intercept", Group: t.resource.Group, Version: t.resource.Version, Resource: t.resource.Resource, Name: t.name,
		},
	}}
	answer, err := s.cluster.typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		s.print.notef("whether %s may intercept cannot be checked: %v", user, err)
		return nil
	}
	if answer.Status.Allowed {
		return nil
	}
	return fmt.Errorf("%s lacks the right to intercept %s: bind it to a ClusterRole with the rule {apiGroups: [%s], "+
		"resources: [%s], resourceNames: [%s], verbs: [intercept]}, by a ClusterRoleBinding",
		user, s.Intercept, t.resource.Group, t.resource.Resource, t.name)
}

// writeToken makes a token of the ServiceAccount for the gateway, and writes it to a file.
func (s *session) writeToken(ctx context.Context, namespace, account, file string) error {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{s.Gateway.Audience}, ExpirationSeconds: &seconds,
	}}
	answer, err := s.cluster.typed.CoreV1().ServiceAccounts(namespace).
		CreateToken(ctx, account, request, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no ServiceAccount %s/%s; create it: kubectl -n %s create serviceaccount %s",
			namespace, account, namespace, account)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you lack the right to create tokens of the ServiceAccount %s/%s (create serviceaccounts/token in "+
			"the namespace %s): %w", namespace, account, namespace, err)
	case err != nil:
		return fmt.Errorf("token of the ServiceAccount %s/%s: %w", namespace, account, err)
	}
	next := file + ".next"
	if err := os.WriteFile(next, []byte(answer.Status.Token), 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}

// runIntercept restarts the hook when its files change, prints the controller's conditions, and
// renews the token.
func (s *session) runIntercept(ctx context.Context, t target, renew func(context.Context) error) error {
	s.Files = nil // the controller is the cluster's
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return filewatch.Watch(ctx, s.watched(), nil) })
	group.Go(func() error {
		for next := renewAfter; sleep.For(ctx.Done(), clock.RealClock{}, next); {
			next = renewAfter
			if err := renew(ctx); err != nil {
				next = retryAfter
				s.complain(ctx, fmt.Errorf("%w; it is tried again after %s", err, retryAfter))
			}
		}
		return nil
	})
	group.Go(func() error {
		s.followConditions(ctx, t)
		return nil
	})
	group.Go(func() error {
		s.loop(ctx)
		return context.Canceled
	})
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// followConditions prints the conditions of the controller until ctx is done.
func (s *session) followConditions(ctx context.Context, t target) {
	ticker := time.NewTicker(conditionInterval)
	defer ticker.Stop()
	fault := ""
	for {
		o, err := s.cluster.client.Resource(t.resource).Get(ctx, t.name, metav1.GetOptions{})
		if apierrors.IsForbidden(err) {
			s.print.notef("the conditions of %s cannot be printed: %v", s.Intercept, err)
			return
		}
		if text := fmt.Sprint(err); err != nil && text != fault { // once, not each second
			fault = text
			s.complain(ctx, fmt.Errorf("conditions of %s: %w", s.Intercept, err))
		}
		if err == nil {
			fault = ""
			s.observer.Reported(displayName(t.kind.Declared, t.name), conditionsOf(o))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// conditionInterval is the time between two reads of the conditions.
const conditionInterval = time.Second

func conditionsOf(o *unstructured.Unstructured) []hook.Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var all []hook.Condition
	for _, item := range list {
		m, _ := item.(map[string]any)
		text := func(key string) string { v, _ := m[key].(string); return v }
		all = append(all, hook.Condition{
			Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
		})
	}
	return slices.Clip(all)
}
