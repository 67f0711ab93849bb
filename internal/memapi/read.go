package memapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// find returns an object in the request's resource; the error is NotFound.
func (s *Server) find(q *request) (*stored, error) {
	o := q.resource.store.objects[key{q.Namespace, q.Name}]
	if o == nil {
		return nil, apierrors.NewNotFound(q.resource.groupResource(), q.Name)
	}
	return o, nil
}

// get answers a GET of an object.
func (s *Server) get(q *request) (*answer, error) {
	o, err := s.find(q)
	if err != nil {
		return nil, err
	}
	if q.Subresource == "scale" {
		return reply(http.StatusOK, q.resource.scaleOf(o.object)), nil
	}
	return &answer{code: http.StatusOK, contentType: "application/json", body: s.present(q, o)}, nil
}

// present returns the JSON of an object in the version, and the form, that a request asks for.
func (s *Server) present(q *request, o *stored) []byte {
	object, same := q.resource.convert(o.object)
	if metadataOnly(q.http) {
		object = object.DeepCopy()
		for k := range object.Object {
			if k != "metadata" {
				delete(object.Object, k)
			}
		}
		object.SetAPIVersion("meta.k8s.io/v1")
		object.SetKind("PartialObjectMetadata")
		same = false
	}
	if same && o.raw != nil {
		return o.raw
	}
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return []byte("null")
	}
	return raw
}

// presentItem returns the JSON of an object in a list. Those of built-in resources leave out their
// kind, which the list has.
func (s *Server) presentItem(q *request, o *stored) []byte {
	if q.resource.custom != nil || metadataOnly(q.http) {
		return s.present(q, o)
	}
	content := maps.Clone(o.object.Object)
	delete(content, "apiVersion")
	delete(content, "kind")
	raw, err := json.Marshal(content)
	if err != nil {
		return []byte("null")
	}
	return raw
}

// metadataOnly reports whether a client asks for the metadata of objects only.
func metadataOnly(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	return strings.Contains(first, "as=PartialObjectMetadata")
}

// listOptions reads the options of a list or a watch.
func listOptions(q *request) (*metav1.ListOptions, error) {
	return options(q, metav1.Convert_url_Values_To_v1_ListOptions, func(o *metav1.ListOptions) field.ErrorList {
		return listvalidation.ValidateListOptions(&internalversion.ListOptions{
			Watch: o.Watch, ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.ResourceVersionMatch,
			Continue: o.Continue, SendInitialEvents: o.SendInitialEvents, Limit: o.Limit,
		}, true)
	})
}

// token is the content of a continue token.
type token struct {
	Version uint64 `json:"rv"`
	// Namespace and Name are the last object that was returned.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func (t token) String() string {
	data, _ := json.Marshal(t) //nolint:errchkjson // strings and a number
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseToken(text string) (t token, err error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return t, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	return t, nil
}

// list answers a LIST.
func (s *Server) list(q *request) (*answer, error) {
	o, err := listOptions(q)
	if err != nil {
		return nil, err
	}
	selected, err := newSelection(q, o)
	if err != nil {
		return nil, err
	}
	page, err := s.page(q.resource.store, o, selected)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	apiVersion := q.resource.gvk.GroupVersion().String()
	kind := q.resource.listKind
	if metadataOnly(q.http) {
		apiVersion = "meta.k8s.io/v1"
		kind = "PartialObjectMetadataList"
	}
	metadata, err := page.listMeta(q.resource)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&out, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, apiVersion, metadata)
	for i, item := range page.items {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(s.presentItem(q, item))
	}
	out.WriteString("]}")
	return &answer{code: http.StatusOK, contentType: "application/json", body: out.Bytes()}, nil
}

// page is a part of a list.
type page struct {
	items    []*stored
	metadata metav1.ListMeta
}

// listMeta returns the metadata of the list. That of custom resources always has a continue token.
func (p *page) listMeta(r *resource) ([]byte, error) {
	if r.custom == nil || p.metadata.Continue != "" {
		return json.Marshal(p.metadata)
	}
	return json.Marshal(map[string]any{"continue": "", "resourceVersion": p.metadata.ResourceVersion})
}

// page returns the objects that a list asks for.
func (s *Server) page(c *collection, o *metav1.ListOptions, selected selection) (*page, error) {
	version, after, err := s.versionOf(c, o)
	if err != nil {
		return nil, err
	}
	objects, ok := c.at(version)
	if !ok {
		return nil, expired(version, c.forgotten)
	}
	p := &page{metadata: metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}}
	all := keys(objects, selected.namespace)
	all = slices.DeleteFunc(all, func(k key) bool {
		return after != nil && k.compare(*after) <= 0 || !selected.matches(objects[k])
	})
	for i, k := range all {
		if o.Limit > 0 && int64(i) == o.Limit {
			last := all[i-1]
			p.metadata.Continue = token{version, last.namespace, last.name}.String()
			if selected.labels.Empty() && selected.fields.Empty() {
				remaining := int64(len(all) - i)
				p.metadata.RemainingItemCount = &remaining
			}
			break
		}
		p.items = append(p.items, objects[k])
	}
	return p, nil
}

// versionOf returns the resourceVersion of a list, and the object after which it begins.
func (s *Server) versionOf(c *collection, o *metav1.ListOptions) (uint64, *key, error) {
	if o.Continue != "" {
		t, err := parseToken(o.Continue)
		return t.Version, &key{t.Namespace, t.Name}, err
	}
	if o.ResourceVersion == "" || o.ResourceVersion == "0" {
		return s.version, nil, nil
	}
	asked, err := parseVersion(o.ResourceVersion)
	switch {
	case err != nil:
		return 0, nil, err
	case asked > s.version:
		return 0, nil, tooLarge(asked, s.version)
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		return asked, nil, nil
	}
	return s.version, nil, nil
}

// parseVersion reads a resourceVersion of a client.
func parseVersion(text string) (uint64, error) {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", text, err))
	}
	return version, nil
}

// expired is the error of a list or a watch that needs events that are gone.
func expired(version, forgotten uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, forgotten))
}

// tooLarge is the error of a list at a resourceVersion that does not exist yet.
func tooLarge(asked, version uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, version), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return err
}
