// Package extra is in a module of its own.
package extra

import _ "example.com/shop/engine/web"
