package engine

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// lookup reads Secrets and ConfigMaps one by one, when a hook needs them: they are not watched, so
// that the right to read these few is enough.
func lookup(client kubernetes.Interface) hook.Lookup {
	return func(ctx context.Context, kind, namespace, name string) (*hook.Source, error) {
		switch kind {
		case "Secret":
			secret, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return &hook.Source{Data: secret.Data, Annotations: secret.Annotations}, nil
		case "ConfigMap":
			found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			data := make(map[string][]byte, len(found.Data)+len(found.BinaryData))
			for key, value := range found.Data {
				data[key] = []byte(value)
			}
			for key, value := range found.BinaryData {
				data[key] = value
			}
			return &hook.Source{Data: data, Annotations: found.Annotations}, nil
		default:
			return nil, fmt.Errorf("a %s cannot be looked up, expected Secret or ConfigMap", kind)
		}
	}
}
