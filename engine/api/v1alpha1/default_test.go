package v1alpha1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

func TestCompositeDefault(t *testing.T) {
	pods := ResourceRule{APIVersion: "v1", Resource: "pods"}
	c := &CompositeController{Spec: CompositeControllerSpec{
		ChildResources: []ChildResourceRule{
			{ResourceRule: pods},
			{ResourceRule: pods, UpdateStrategy: &ChildUpdateStrategy{Method: UpdateOnDelete}},
		},
		Hooks: &CompositeHooks{
			Sync: &Hook{Webhook: &Webhook{
				Timeout: "-3s", Service: &ServiceReference{Name: "a", Namespace: "b"},
				CABundle: &CABundle{SecretRef: &KeyReference{}}, ClientTLS: &ClientTLS{},
				Authorization: &Authorization{}, BasicAuth: &BasicAuth{},
			}},
			Finalize:  &Hook{Version: HookV2, Webhook: &Webhook{Timeout: "3s"}},
			Customize: &Hook{GRPC: &GRPC{Timeout: "soon"}},
		},
	}}
	want := CompositeControllerSpec{
		ParentResource: ParentResourceRule{RevisionHistory: &RevisionHistory{FieldPaths: []string{"spec"}}},
		ChildResources: []ChildResourceRule{
			{ResourceRule: pods, UpdateStrategy: &ChildUpdateStrategy{Method: UpdateOnDelete}},
		},
		Hooks: &CompositeHooks{
			Sync: &Hook{Version: HookV1, Webhook: &Webhook{
				Timeout: "10s", ResponseUnmarshalMode: UnmarshalLoose,
				Service:       &ServiceReference{Name: "a", Namespace: "b", Port: ptr.To[int32](80), Protocol: ptr.To("http")},
				CABundle:      &CABundle{SecretRef: &KeyReference{Key: "ca.crt"}},
				ClientTLS:     &ClientTLS{CertKey: "tls.crt", PrivateKeyKey: "tls.key"},
				Authorization: &Authorization{Type: "Bearer", SecretRef: KeyReference{Key: "token"}},
				BasicAuth:     &BasicAuth{UsernameKey: "username", PasswordKey: "password"},
			}},
			Finalize:  &Hook{Version: HookV2, Webhook: &Webhook{Timeout: "3s", ResponseUnmarshalMode: UnmarshalStrict}},
			Customize: &Hook{Version: HookV1, GRPC: &GRPC{Timeout: "soon"}},
		},
	}
	for _, round := range []string{"first", "second"} {
		c.Default()
		if diff := cmp.Diff(want, c.Spec); diff != "" {
			t.Errorf("after the %s Default (-want +got):\n%s", round, diff)
		}
	}
}

func TestDecoratorDefault(t *testing.T) {
	d := &DecoratorController{Spec: DecoratorControllerSpec{
		Resources:   []DecoratedResourceRule{{}, {}},
		Attachments: []AttachmentRule{{}, {UpdateStrategy: &AttachmentUpdateStrategy{}}},
	}}
	d.Default()
	want := DecoratorControllerSpec{
		Resources:   []DecoratedResourceRule{{}},
		Attachments: []AttachmentRule{{UpdateStrategy: &AttachmentUpdateStrategy{Method: UpdateOnDelete}}},
	}
	if diff := cmp.Diff(want, d.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMapDefault(t *testing.T) {
	claims := InputResourceRule{ResourceRule{APIVersion: "v1", Resource: "persistentvolumeclaims"}}
	jobs := ResourceRule{APIVersion: "batch/v1", Resource: "jobs"}
	m := &MapController{Spec: MapControllerSpec{
		InputResources: []InputResourceRule{claims, claims},
		OutputResources: []OutputResourceRule{
			{ResourceRule: jobs}, {ResourceRule: jobs, UpdateStrategy: &OutputUpdateStrategy{}},
		},
		Hooks: &MapHooks{
			Map:       &Hook{GRPC: &GRPC{}},
			Tombstone: &Hook{Version: HookV2, Webhook: &Webhook{}},
		},
	}}
	want := MapControllerSpec{
		InputResources: []InputResourceRule{claims},
		OutputResources: []OutputResourceRule{
			{ResourceRule: jobs, UpdateStrategy: &OutputUpdateStrategy{Method: UpdateOnDelete}},
		},
		Hooks: &MapHooks{
			Map:       &Hook{Version: HookV1, GRPC: &GRPC{Timeout: "10s"}},
			Tombstone: &Hook{Version: HookV2, Webhook: &Webhook{Timeout: "10s", ResponseUnmarshalMode: UnmarshalStrict}},
		},
	}
	for _, round := range []string{"first", "second"} {
		m.Default()
		if diff := cmp.Diff(want, m.Spec); diff != "" {
			t.Errorf("after the %s Default (-want +got):\n%s", round, diff)
		}
	}
}

func TestResyncPeriod(t *testing.T) {
	for _, test := range []struct {
		name    string
		seconds *int32
		want    time.Duration
	}{
		{"unset means none", nil, 0},
		{"below the minimum", ptr.To[int32](-5), time.Second},
		{"zero", ptr.To[int32](0), time.Second},
		{"as said", ptr.To[int32](30), 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := CompositeControllerSpec{ResyncPeriodSeconds: test.seconds}
			if got := spec.ResyncPeriod(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	for text, want := range map[Timeout]time.Duration{"": DefaultTimeout, "0": DefaultTimeout, "-1s": DefaultTimeout,
		"soon": DefaultTimeout, "1m30s": 90 * time.Second} {
		if got := text.Duration(); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
