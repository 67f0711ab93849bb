package memapi

import (
	"net/http"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// aggregated is the media type of the document that has the resources of all groups.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// document answers a request for something that is not a resource: discovery, version, health.
func (s *Server) document(r *http.Request) *answer {
	path := strings.Trim(r.URL.Path, "/")
	parts := strings.Split(path, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case path == "version":
		return reply(http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0-memapi"})
	case path == "healthz", path == "livez", path == "readyz":
		return &answer{code: http.StatusOK, contentType: "text/plain", body: []byte("ok")}
	case path == "api" || path == "apis":
		return s.root(path, r.Header.Get("Accept"))
	case len(parts) == 2 && parts[0] == "apis" && len(s.versionsOf(parts[1])) > 0:
		group := s.group(parts[1])
		group.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}
		return reply(http.StatusOK, group)
	case len(parts) == 2 && parts[0] == "api":
		return s.resourceList(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		return s.resourceList(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return fail(errNoRoute())
}

// root answers /api and /apis, with the documents of all groups if the client accepts them.
func (s *Server) root(path, accept string) *answer {
	groups := s.groups()
	if path == "api" {
		groups = []string{""}
	}
	if strings.Contains(accept, "as=APIGroupDiscoveryList") && strings.Contains(accept, "v=v2;") {
		list := apidiscoveryv2.APIGroupDiscoveryList{
			TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"},
		}
		for _, g := range groups {
			list.Items = append(list.Items, s.discovered(g))
		}
		a := reply(http.StatusOK, list)
		a.contentType = aggregated
		return a
	}
	if path == "api" {
		return reply(http.StatusOK, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: s.versionsOf(""),
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
		})
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	for _, g := range groups {
		list.Groups = append(list.Groups, s.group(g))
	}
	return reply(http.StatusOK, list)
}

func (s *Server) group(name string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for _, v := range s.versionsOf(name) {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

// resourceList is the document of one group and version.
func (s *Server) resourceList(gv schema.GroupVersion) *answer {
	found := s.resourcesIn(gv)
	if len(found) == 0 {
		return fail(errNoRoute())
	}
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv.String(),
	}
	for _, r := range found {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.plural, SingularName: r.singular, Namespaced: r.namespaced, Kind: r.gvk.Kind,
			Verbs: r.verbs(""), ShortNames: r.shortNames, Categories: r.category,
		})
		for _, sub := range r.subresources() {
			group, version, kind := r.responseKind(sub)
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.plural + "/" + sub, Namespaced: r.namespaced, Kind: kind, Group: group, Version: version,
				Verbs: r.verbs(sub),
			})
		}
	}
	return reply(http.StatusOK, list)
}

// responseKind returns the kind of a subresource; group and version are empty for the resource's.
func (r *resource) responseKind(subresource string) (group, version, kind string) {
	if subresource == "scale" {
		return "autoscaling", "v1", "Scale"
	}
	return "", "", r.gvk.Kind
}

// discovered is the document of one group.
func (s *Server) discovered(group string) apidiscoveryv2.APIGroupDiscovery {
	g := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}}
	for _, v := range s.versionsOf(group) {
		gv := schema.GroupVersion{Group: group, Version: v}
		one := apidiscoveryv2.APIVersionDiscovery{Version: v, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for _, r := range s.resourcesIn(gv) {
			one.Resources = append(one.Resources, r.discovered())
		}
		g.Versions = append(g.Versions, one)
	}
	return g
}

func (r *resource) discovered() apidiscoveryv2.APIResourceDiscovery {
	scope := apidiscoveryv2.ScopeCluster
	if r.namespaced {
		scope = apidiscoveryv2.ScopeNamespace
	}
	kind := func(group, version, kind string) *metav1.GroupVersionKind {
		return &metav1.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	d := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.plural, ResponseKind: kind(r.gvk.Group, r.gvk.Version, r.gvk.Kind), Scope: scope,
		SingularResource: r.singular, Verbs: r.verbs(""), ShortNames: r.shortNames, Categories: r.category,
	}
	for _, sub := range r.subresources() {
		group, version, name := r.responseKind(sub)
		if version == "" {
			group = r.gvk.Group
			version = r.gvk.Version
		}
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: sub, ResponseKind: kind(group, version, name), Verbs: r.verbs(sub),
		})
	}
	return d
}
