package methods

import (
	// These packages register the services of hooks. A new kind of controller adds its package here:
	// [Find] knows the methods of all services that are linked into the program.
	_ "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	_ "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	_ "github.com/hookloop/hookloop/gen/hookloop/map/v1"
)
