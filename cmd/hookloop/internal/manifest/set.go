package manifest

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
	"go.yaml.in/yaml/v3"
)

// Set holds the objects of all files, in the order in which they were read.
type Set struct {
	Objects []*Object
	// Faults lists what is wrong with the files that [ReadAll] has skipped.
	Faults []*Error
	// paths holds the arguments, for messages.
	paths []string
}

// Object holds an object from a file. The embedded Object has its metadata and its JSON.
type Object struct {
	*object.Object
	file string
	// above is how many lines of the file come before the document.
	above int
	node  *yaml.Node
}

// Read reads the objects of files and directories. "-" is stdin. Of a directory it reads the
// files with the extensions .yaml, .yml and .json, but no subdirectory, as kubectl does without
// --recursive; it passes over hidden files and kustomizations. A file that two arguments name is
// read once. A document is YAML or JSON; the items of a List are objects of their own.
//
// The error joins one *Error for each file that is wrong.
func Read(stdin io.Reader, paths ...string) (*Set, error) {
	set, err := ReadAll(stdin, paths...)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, fault := range set.Faults {
		errs = append(errs, fault)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return set, nil
}

// ReadAll is like [Read], but collects what is wrong with the files in Set.Faults. It keeps the
// objects that come before the first fault of a file. It returns an error only if the arguments are
// wrong.
func ReadAll(stdin io.Reader, paths ...string) (*Set, error) {
	if len(paths) == 0 {
		return nil, errors.New("-f: is missing, expected a file, a directory, or - for stdin")
	}
	sources, err := find(paths)
	if err != nil {
		return nil, err
	}
	set := &Set{paths: paths}
	limits := newLimits()
	for _, source := range sources {
		data, err := source.read(stdin, limits)
		if err == nil {
			err = set.parse(source.name, data, limits)
		}
		set.Faults = append(set.Faults, faultsOf(source.name, err)...)
	}
	return set, nil
}

// faultsOf returns the faults that an error about a file contains.
func faultsOf(file string, err error) []*Error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, one := range joined.Unwrap() {
			all = append(all, faultsOf(file, one)...)
		}
		return all
	}
	var fault *Error
	if !errors.As(err, &fault) {
		fault = faultf(Position{File: file}, "%v", err)
	}
	return []*Error{fault}
}

// String returns the arguments of Read.
func (s *Set) String() string { return strings.Join(s.paths, ", ") }

// Error says what is wrong with a file, and where.
type Error struct {
	Position Position
	Text     string
}

// Error returns file:line:column: text.
func (e *Error) Error() string { return e.Position.String() + ": " + e.Text }

func faultf(at Position, format string, args ...any) *Error {
	return &Error{Position: at, Text: fmt.Sprintf(format, args...)}
}

// Errorf makes an error about a field of the object. See [Object.At] for the path.
func (o *Object) Errorf(path, format string, args ...any) *Error {
	return faultf(o.At(path), format, args...)
}
