// Package memapi_test compares the API server in memory with a real one: the same requests must get
// the same answers.
package memapi_test
