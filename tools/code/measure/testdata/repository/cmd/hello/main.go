// Command hello is the program whose size is measured.
package main

import "example.com/shop/engine/web"

func main() {
	if web.Open("hello") == nil {
		panic("closed")
	}
}

// Exported names of commands do not count.
func Unimportable() {}
