package validate

import "github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"

// transports warns about hooks with a transport that another program adds to Hookloop's own: this
// program knows neither whether there is one of this name nor what its configuration may be.
func (c *checker) transports(controller *manifest.Controller) {
	hooks := controller.Hooks()
	for _, op := range controller.Kind().Operations {
		hook := hooks[op]
		if hook == nil || hook.Transport == nil {
			continue
		}
		path := "spec.hooks." + string(op) + ".transport"
		c.add(controller.Object, Warning, path, "%s: %q is a transport that another program adds "+
			"(server.Config.Transports), so its config is not checked; this program has webhook and grpc",
			path, hook.Transport.Name)
	}
}
