package dev

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/catalog"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/rbac"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// check looks, before anything is written, for faults that no sync could repair: a controller that
// an engine in the cluster runs as well, parents of a resource that nobody declares, and missing
// rights. It drops CRDs that the user may not apply if the cluster already serves their resources.
func (s *session) check(ctx context.Context, d *declared) error {
	if err := s.refuseRivals(ctx, d.controllers); err != nil {
		return err
	}
	known, err := catalog.Of(ctx, s.cluster.typed.Discovery(), d.crdFiles)
	if err != nil {
		return err
	}
	if err := undeclared(d.controllerFiles, known); err != nil {
		return err
	}
	return errors.Join(s.checkCRDs(ctx, d), s.checkRights(ctx, d, known))
}

// checkRights checks the rights on the objects of the controllers.
func (s *session) checkRights(ctx context.Context, d *declared, known *catalog.Catalog) error {
	needed, err := rbac.Of(d.controllerFiles, known, rbac.Options{})
	if err != nil {
		return err
	}
	for _, crd := range d.crdFiles {
		if !s.Cleanup {
			break
		}
		made, err := s.cluster.isMade(ctx, crd.Name())
		if err != nil {
			return err
		}
		if made {
			spec := crd.Definition.Spec
			needed.Need(crdResource.GroupResource(), crd.Name(), "--cleanup", "delete")
			objects := schema.GroupResource{Group: spec.Group, Resource: spec.Names.Plural}
			needed.Need(objects, "", "--cleanup", "list", "delete")
		}
	}
	missing, err := s.missing(ctx, needed)
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("your user of the context %q lacks rights: %s; ask an administrator for them (\"hookloop rbac -f "+
		"%s --check\" prints a role), or use another cluster: --context, --local", s.cluster.context,
		strings.Join(missing, "; "), strings.Join(s.Files, " -f "))
}

// isMade returns true if a session has made the CRD, or will make it.
func (c *cluster) isMade(ctx context.Context, name string) (bool, error) {
	crd, err := c.client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if apierrors.IsForbidden(err) { // reported elsewhere
		return false, nil
	}
	return err == nil && crd.GetLabels()[madeLabel] != "", err
}

// undeclared returns an error for each parent whose resource is declared neither in the cluster nor
// in the files.
func undeclared(controllers []*manifest.Controller, known *catalog.Catalog) error {
	var faults []error
	for _, c := range controllers {
		for _, use := range c.Uses() {
			if use.Role != v1alpha1.RoleParent || !known.Absent(use.Rule) {
				continue
			}
			help := "add its CustomResourceDefinition to the files of -f, or apply it"
			if other, found := known.Similar(use.Rule); found {
				help = "expected " + v1alpha1.ResourceRule{
					APIVersion: other.GVK.GroupVersion().String(), Resource: other.Plural,
				}.String()
			}
			faults = append(faults, c.Errorf(use.Path, "%s: neither the cluster nor a file has the resource %s; %s",
				c, use.Rule, help))
		}
	}
	return errors.Join(faults...)
}

// checkCRDs drops the CRDs that the user may not apply. It returns an error if the cluster needs
// one of them.
func (s *session) checkCRDs(ctx context.Context, d *declared) error {
	var faults []error
	for i := len(d.crdFiles) - 1; i >= 0; i-- {
		crd := d.crdFiles[i]
		needed := &rbac.Access{}
		needed.Need(crdResource.GroupResource(), "", crd.Name(), "list", "watch")
		needed.Need(crdResource.GroupResource(), crd.Name(), crd.Name(), "get", "create", "patch")
		missing, err := s.missing(ctx, needed)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			continue
		}
		served, err := catalog.Of(ctx, s.cluster.typed.Discovery(), nil)
		if err != nil {
			return err
		}
		if !servesAll(served, crd) {
			faults = append(faults, crd.Errorf("", "%s: the cluster does not have this CustomResourceDefinition, and your user "+
				"lacks the rights to apply it: %s; ask an administrator for them, or to apply it", crd.Name(),
				strings.Join(missing, "; ")))
			continue
		}
		s.print.notef("CustomResourceDefinition %s is not applied, the cluster's own is used: your user lacks the right %s",
			crd.Name(), strings.Join(missing, "; "))
		d.crds, d.crdFiles = slices.Delete(d.crds, i, i+1), slices.Delete(d.crdFiles, i, i+1)
	}
	return errors.Join(faults...)
}

// servesAll returns true if a cluster serves every served version of a CRD.
func servesAll(served *catalog.Catalog, crd *manifest.CRD) bool {
	spec := crd.Definition.Spec
	for _, v := range spec.Versions {
		gv := schema.GroupVersion{Group: spec.Group, Version: v.Name}
		_, found := served.Resource(v1alpha1.ResourceRule{APIVersion: gv.String(), Resource: spec.Names.Plural})
		if v.Served && !found {
			return false
		}
	}
	return true
}

// missing returns the rights that the user lacks. If the user may not ask for them, we assume that
// all are there.
func (s *session) missing(ctx context.Context, needed *rbac.Access) ([]string, error) {
	missing, err := needed.Missing(ctx, s.cluster.config, types.NamespacedName{})
	if apierrors.IsForbidden(err) {
		s.print.notef("your rights cannot be checked: %v", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return missing.Lines(), nil
}
