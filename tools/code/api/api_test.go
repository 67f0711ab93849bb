package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/tools/code/source"
)

const shop = `// Package shop is an example.
package shop

import "context"

// A Size is exported; others are not.
const (
	A Size = iota
	B
	c
)

const Untyped, other = "a" + "b", 1

var (
	ErrNone = errNone
	Names   []string
	hidden  = func() {}
)

type Size int
type Alias = Size
type lower struct{ Field int }

// Cart has fields.
type Cart[T any] struct {
	*Size
	Items map[string]T // in the cart
	Run, Stop func(
		context.Context, int,
	) error
	secret int
}

type Store interface {
	Size
	Get(name string) (Cart[int], bool)
	sealed()
}

func New[T any](size Size, opts ...func(*Cart[T])) *Cart[T] { return nil }
func (c *Cart[T]) Add(item T) error { return nil }
func (c *Cart[T]) add() {}
func (lower) Do() {}
func helper() {}
`

const shopAPI = `shop: const A Size
shop: const B Size
shop: const Untyped = "a" + "b"
shop: field Cart embeds *Size
shop: field Cart has unexported ones
shop: field Cart.Items map[string]T
shop: field Cart.Run func( context.Context, int, ) error
shop: field Cart.Stop func( context.Context, int, ) error
shop: func (c *Cart[T]) Add(item T) error
shop: func New[T any](size Size, opts ...func(*Cart[T])) *Cart[T]
shop: method Store embeds Size
shop: method Store has unexported ones
shop: method Store.Get(name string) (Cart[int], bool)
shop: type Alias = Size
shop: type Cart[T any] struct
shop: type Size int
shop: type Store interface
shop: var ErrNone
shop: var Names []string
`

func TestExported(t *testing.T) {
	files := []source.File{
		{Path: "README.md", Language: "Markdown"},
		{Path: "shop/shop.go", Language: "Go", Text: shop},
		{Path: "shop/shop_test.go", Language: "Go", Test: true, Text: "package shop\nfunc Test() {}"},
		{Path: "shop/internal/x/x.go", Language: "Go", Text: "package x\nfunc X() {}"},
		{Path: "gen/g/g.go", Language: "Go", Text: "package g\nfunc G() {}"},
		{Path: "serve/main.go", Language: "Go", Text: "package main\nfunc Main() {}"},
	}
	lines, err := exported(files)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(lines, "\n") + "\n"; got != shopAPI {
		t.Errorf("got:\n%s\nwant:\n%s", got, shopAPI)
	}
}

func TestSyntaxError(t *testing.T) {
	_, err := exported([]source.File{{Path: "a/a.go", Language: "Go", Text: "package"}})
	if err == nil || !strings.Contains(err.Error(), "a/a.go:1") {
		t.Errorf("error %v, want one with the position", err)
	}
}

// TestCheck writes the list of a repository, and checks it before and after a change.
func TestCheck(t *testing.T) {
	root := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"-root", root}, args...), &out)
		return out.String(), err
	}
	write("shop/shop.go", shop)
	write(list, "")
	if out, err := command(); err != nil || out != shopAPI {
		t.Errorf("printed %q, %v", out, err)
	}
	if out, err := command("-write"); err != nil || out != "" {
		t.Errorf("-write: %q, %v", out, err)
	}
	if out, err := command("-check"); err != nil || out != "" {
		t.Errorf("-check of the current list: %q, %v", out, err)
	}
	write("shop/shop.go", strings.Replace(shop, "Names   []string", "Names   []int", 1))
	const want = "-shop: var Names []string\n+shop: var Names []int\n"
	if out, err := command("-check"); !errors.Is(err, errDiffers) || out != want {
		t.Errorf("-check after a change: %q, %v; want %q, %v", out, err, want, errDiffers)
	}
}
