package v1alpha1

// EndpointConfig is TLS and credentials for every webhook at one host. The first entry that matches
// counts; a webhook with any TLS or credentials of its own uses none.
// +kubebuilder:validation:XValidation:rule="!(has(self.authorization) && has(self.basicAuth))",message="at most one of authorization and basicAuth may be set"
type EndpointConfig struct {
	// Host is a host or host:port, compared without case; a missing port is the protocol's default.
	// +kubebuilder:validation:MinLength=1
	Host string `json:"host"`
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
	// +optional
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`
	// +optional
	Authorization *Authorization `json:"authorization,omitempty"`
	// +optional
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
}

// CABundle is the certificates that a hook's certificate is verified with.
// +kubebuilder:validation:XValidation:rule="(has(self.inline) ? 1 : 0) + (has(self.secretRef) ? 1 : 0) + (has(self.configMapRef) ? 1 : 0) == 1",message="exactly one of inline, secretRef and configMapRef must be set"
type CABundle struct {
	// Inline is PEM.
	// +optional
	Inline *string `json:"inline,omitempty"`
	// SecretRef names a key of a Secret that holds PEM; the key defaults to ca.crt.
	// +optional
	SecretRef *KeyReference `json:"secretRef,omitempty"`
	// ConfigMapRef names a key of a ConfigMap that holds PEM; the key defaults to ca.crt.
	// +optional
	ConfigMapRef *KeyReference `json:"configMapRef,omitempty"`
}

// KeyReference names one key of a Secret or ConfigMap. Its default is documented at
// the field that holds the reference.
type KeyReference struct {
	// Name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace is the namespace of the object.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// Key is the key in the object's data. The field that holds this reference has its default.
	// +optional
	Key string `json:"key,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace is the namespace of the object.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
}

// ClientTLS is the certificate that the engine shows to a hook.
type ClientTLS struct {
	SecretRef SecretReference `json:"secretRef"`
	// CertKey defaults to tls.crt.
	// +optional
	CertKey string `json:"certKey,omitempty"`
	// PrivateKeyKey defaults to tls.key.
	// +optional
	PrivateKeyKey string `json:"privateKeyKey,omitempty"`
}

// Authorization is the Authorization header of every call: the type and the credentials.
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type.lowerAscii() != 'basic'",fieldPath=".type",message="type basic is not allowed, use basicAuth"
type Authorization struct {
	// Type defaults to Bearer.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Type string `json:"type,omitempty"`
	// SecretRef names the key that holds the credentials; the key defaults to token.
	SecretRef KeyReference `json:"secretRef"`
}

// BasicAuth is a user name and a password, both from one Secret.
type BasicAuth struct {
	SecretRef SecretReference `json:"secretRef"`
	// UsernameKey defaults to username.
	// +optional
	UsernameKey string `json:"usernameKey,omitempty"`
	// PasswordKey defaults to password.
	// +optional
	PasswordKey string `json:"passwordKey,omitempty"`
}
