package rbac

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Missing asks a cluster which rights it does not grant, and returns them in roles with the suffix
// -missing. It asks for the ServiceAccount as or, if that is empty, for the user of the
// configuration.
func (a *Access) Missing(ctx context.Context, config *rest.Config, as types.NamespacedName) (*Access, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	refused := make([][]bool, len(a.grants)) // by grant and verb
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviews)
	for i, g := range a.grants {
		refused[i] = make([]bool, len(g.verbs))
		for j, verb := range g.verbs {
			group.Go(func() error {
				allowed, err := ask(ctx, client, as, g.attributes(verb))
				refused[i][j] = !allowed
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	missing := &Access{options: a.options}
	missing.options.Name += "-missing"
	for i, g := range a.grants {
		rest := *g
		rest.verbs = nil
		for j, verb := range g.verbs {
			if refused[i][j] {
				rest.verbs = append(rest.verbs, verb)
			}
		}
		if len(rest.verbs) > 0 {
			missing.grants = append(missing.grants, &rest)
		}
	}
	return missing, nil
}

// reviews limits how many rights are asked for at the same time.
const reviews = 8

func (g *grant) attributes(verb string) *authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(g.resource, "/")
	name := ""
	if len(g.names) > 0 {
		name = g.names[0]
	}
	return &authorizationv1.ResourceAttributes{
		Verb: verb, Group: g.group, Resource: resource, Subresource: subresource, Namespace: g.namespace, Name: name,
	}
}

// ask asks the API server about one right.
func ask(
	ctx context.Context, client kubernetes.Interface, as types.NamespacedName, what *authorizationv1.ResourceAttributes,
) (bool, error) {
	if as.Name == "" {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what},
			}, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("review of the user's rights: %w", err)
		}
		return answer.Status.Allowed, nil
	}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + as.Namespace + ":" + as.Name,
			Groups: []string{
				"system:serviceaccounts", "system:serviceaccounts:" + as.Namespace, "system:authenticated",
			},
			ResourceAttributes: what,
		},
	}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; expected the right to create subjectaccessreviews.authorization.k8s.io, "+
			"or the kubeconfig of the ServiceAccount itself without --as", err)
	}
	if err != nil {
		return false, fmt.Errorf("--as %s: %w", as, err)
	}
	return answer.Status.Allowed, nil
}
