package methods

// The services of hooks. A new kind of controller adds its package here: [Find] knows the methods
// of all services that are linked into the program.
import (
	_ "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	_ "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	_ "github.com/hookloop/hookloop/gen/hookloop/map/v1"
)
