package cache

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// clientFor makes a REST client for a resource's group and version that decodes objects raw. failed
// is called with failures in the middle of a watch: a Status that is one, and events that cannot be
// decoded.
func clientFor(s *Config, r object.Resource, failed func(error)) (rest.Interface, error) {
	config := rest.CopyConfig(s.Config)
	gv := r.GVK.GroupVersion()
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.NegotiatedSerializer = codec{failed: failed, object: s.Decode}
	return rest.RESTClientFor(config)
}

// list is a list of objects.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*object.Object
}

// DeepCopyObject implements runtime.Object. Its items are immutable.
func (l *list) DeepCopyObject() runtime.Object {
	out := *l
	return &out
}

// decodeList reads a list; its items get the kind that they may leave out.
func decodeList(gvk schema.GroupVersionKind, data []byte) (*list, error) {
	var wire struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return nil, fmt.Errorf("list of %s: %w", gvk.Kind, err)
	}
	l := &list{ListMeta: wire.Metadata, Items: make([]*object.Object, 0, len(wire.Items))}
	for i, item := range wire.Items {
		o, err := object.DecodeAs(gvk, item)
		if err != nil {
			return nil, fmt.Errorf("list of %s: items[%d]: %w", gvk.Kind, i, err)
		}
		l.Items = append(l.Items, o)
	}
	return l, nil
}

// codec is the serializer that client-go's REST client asks for. It reads objects raw; it never
// writes.
type codec struct {
	failed func(error)
	object func(text []byte) (*object.Object, error)
}

var (
	_ runtime.NegotiatedSerializer = codec{}
	_ runtime.Serializer           = codec{}
)

// SupportedMediaTypes names JSON.
func (c codec) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{
		{
			MediaType:        runtime.ContentTypeJSON,
			MediaTypeType:    "application",
			MediaTypeSubType: "json",
			EncodesAsText:    true,
			Serializer:       c,
			StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: c, Framer: framer{}},
		},
	}
}

// EncoderForVersion returns the codec itself.
func (c codec) EncoderForVersion(runtime.Encoder, runtime.GroupVersioner) runtime.Encoder { return c }

// DecoderToVersion returns the codec itself.
func (c codec) DecoderToVersion(runtime.Decoder, runtime.GroupVersioner) runtime.Decoder { return c }

// Encode fails: nothing is written through the cache's client.
func (c codec) Encode(runtime.Object, io.Writer) error {
	return fmt.Errorf("the cache's client does not write")
}

// Identifier names the codec.
func (c codec) Identifier() runtime.Identifier { return "raw" }

// Decode reads the frame of a watch event, a Status, or an object.
func (c codec) Decode(
	data []byte,
	_ *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	o, gvk, err := c.decode(data, into)
	if err != nil {
		c.failed(fmt.Errorf("the API server's answer cannot be read: %w", err))
	}
	return o, gvk, err
}

func (c codec) decode(data []byte, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, ok := into.(*metav1.WatchEvent); ok {
		return event, nil, decodeEvent(data, event)
	}
	o, err := c.object(data)
	if err != nil {
		return nil, nil, err
	}
	gvk := o.GVK()
	if gvk == metav1.Unversioned.WithKind("Status") {
		status := &metav1.Status{}
		err := json.Unmarshal(data, status)
		if err == nil && status.Status == metav1.StatusFailure {
			c.failed(apierrors.FromObject(status))
		}
		return status, &gvk, err
	}
	return o, &gvk, nil
}
