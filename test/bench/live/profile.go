package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookloop/hookloop/test/serve"
)

// profileSeconds is the duration of a profile.
const profileSeconds = 10

// heap fetches a heap profile of the engine, after a garbage collection if gc is 1. It saves the
// profile if the options require profiles.
func (s *stage) heap(ctx context.Context, gc string) error {
	profile, err := serve.Fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/heap?gc=%s", s.pprof, gc))
	if err != nil || s.profile == "" {
		return err
	}
	return s.save("heap", profile)
}

// profiled takes a CPU profile of the engine while it calls do repeatedly, if the options require
// profiles. It runs after the measurements, because a profile costs time. The name is part of the
// file's name.
func (s *stage) profiled(ctx context.Context, name string, do func(round int) error) error {
	if s.profile == "" || s.alone != nil {
		return nil
	}
	type fetched struct {
		profile string
		err     error
	}
	done := make(chan fetched, 1)
	go func() { // the engine → the file; ends with the engine's profile
		profile, err := serve.Fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.pprof, profileSeconds))
		done <- fetched{profile, err}
	}()
	for round := 0; ; round++ {
		select {
		case f := <-done:
			if f.err != nil {
				return f.err
			}
			return s.save(name, f.profile)
		default:
		}
		if err := do(round); err != nil {
			<-done
			return err
		}
	}
}

func (s *stage) save(name, profile string) error {
	file := s.profileOf(name)
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		return err
	}
	s.progress("  profile: go tool pprof -top %s", file)
	return nil
}

// profileOf returns the file for a process's profile. The start of the hook has created its folder.
func (s *stage) profileOf(process string) string {
	return filepath.Join(s.profile, fmt.Sprintf("%s-%s-%s.pprof", s.workload, s.transport, process))
}
