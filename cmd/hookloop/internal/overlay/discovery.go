package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aggregated is the media type of the discovery document that covers all groups.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// groups answers /apis with the API server's groups and the overlay's.
func (t *transport) groups(r *http.Request) (*http.Response, error) {
	accept := "application/json"
	if strings.Contains(r.Header.Get("Accept"), "v=v2;as=APIGroupDiscoveryList") {
		accept = aggregated + "," + accept
	}
	served, data, err := fetch(t.next, r, accept)
	if err != nil || served.StatusCode != http.StatusOK {
		return served, err
	}
	if !strings.Contains(served.Header.Get("Content-Type"), "as=APIGroupDiscoveryList") {
		return t.plainGroups(r, served, data)
	}
	_, own, err := fetch(t.overlay.memory, r, aggregated)
	if err != nil {
		return nil, err
	}
	var all, ours apidiscoveryv2.APIGroupDiscoveryList
	if err := unmarshal("/apis", data, &all); err != nil {
		return nil, err
	}
	if err := unmarshal("/apis of the overlay", own, &ours); err != nil {
		return nil, err
	}
	mergeGroup(&all, &ours)
	return answer(served, all)
}

// mergeGroup adds the overlay's group to the API server's list. It keeps resources of the group
// that only the API server has, such as ControllerRevisions.
func mergeGroup(all, ours *apidiscoveryv2.APIGroupDiscoveryList) {
	isOurs := func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == v1alpha1.GroupVersion.Group }
	own := ours.Items[slices.IndexFunc(ours.Items, isOurs)] // the overlay always has its group
	at := slices.IndexFunc(all.Items, isOurs)
	if at < 0 {
		all.Items = append(all.Items, own)
		return
	}
	for _, v := range all.Items[at].Versions {
		if v.Version != v1alpha1.GroupVersion.Version {
			continue
		}
		for _, resource := range v.Resources {
			if !isController(resource.Resource) {
				own.Versions[0].Resources = append(own.Versions[0].Resources, resource)
			}
		}
	}
	all.Items[at] = own
}

// plainGroups does the same for the older list, which names the groups without their resources.
func (t *transport) plainGroups(r *http.Request, served *http.Response, data []byte) (*http.Response, error) {
	_, own, err := fetch(t.overlay.memory, r, "application/json")
	if err != nil {
		return nil, err
	}
	var all, ours metav1.APIGroupList
	if err := unmarshal("/apis", data, &all); err != nil {
		return nil, err
	}
	if err := unmarshal("/apis of the overlay", own, &ours); err != nil {
		return nil, err
	}
	isOurs := func(g metav1.APIGroup) bool { return g.Name == v1alpha1.GroupVersion.Group }
	if !slices.ContainsFunc(all.Groups, isOurs) {
		all.Groups = append(all.Groups, ours.Groups[slices.IndexFunc(ours.Groups, isOurs)])
	}
	return answer(served, all)
}

// resources answers a request for the resources of the overlay's group and version.
func (t *transport) resources(r *http.Request) (*http.Response, error) {
	own, data, err := fetch(t.overlay.memory, r, "application/json")
	if err != nil {
		return nil, err
	}
	served, more, err := fetch(t.next, r, "application/json")
	if err != nil || served.StatusCode != http.StatusOK && served.StatusCode != http.StatusNotFound {
		return served, err
	}
	var ours metav1.APIResourceList
	if err := unmarshal("resources of the overlay", data, &ours); err != nil {
		return nil, err
	}
	if served.StatusCode == http.StatusOK {
		var theirs metav1.APIResourceList
		if err := unmarshal(r.URL.Path, more, &theirs); err != nil {
			return nil, err
		}
		for _, resource := range theirs.APIResources {
			if name, _, _ := strings.Cut(resource.Name, "/"); !isController(name) {
				ours.APIResources = append(ours.APIResources, resource)
			}
		}
	}
	return answer(own, ours)
}

// fetch requests a document and reads it. The body of the response can still be read afterwards.
func fetch(from http.RoundTripper, r *http.Request, accept string) (*http.Response, []byte, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", accept)
	r.Header.Del("If-None-Match") // the merged document has another tag
	response, err := from.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read
	if err != nil {
		return nil, nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response, data, nil
}

func unmarshal(path string, data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("discovery document %s: %w", path, err)
	}
	return nil
}

// answer replaces the body of a response.
func answer(response *http.Response, document any) (*http.Response, error) {
	data, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	response.ContentLength = int64(len(data))
	response.Header.Set("Content-Length", strconv.Itoa(len(data)))
	response.Header.Del("ETag")
	return response, nil
}
