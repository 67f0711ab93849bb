package pipeline

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/object"
)

// explain returns the message of an opened circuit.
func (r *run) explain(ctx context.Context, trip circuit.Trip, d diff) string {
	subject := object.KindString(trip.Field.Ref.GVK)
	if trip.Field.Ref.Name != "" {
		subject = trip.Field.Ref.String()
	}
	text := fmt.Sprintf("the circuit is open: %s of %s was rewritten over and over (limit %d a minute) "+
		"without a change by a user", d.Path, subject, r.Circuit.Limit)
	if trip.Field.Ref.Name == "" {
		text = fmt.Sprintf("the circuit is open: objects of %s were replaced by others over and over (limit %d a minute) "+
			"without a change by a user", subject, r.Circuit.Limit)
	}
	if values := d.values(trip.Field.Ref.GVK); values != "" {
		text += ": " + values
	}
	if peers := r.state.circuit.peers; len(peers) > 1 {
		text += fmt.Sprintf("; the hook was answered by %q in turn, whose answers may differ", peers)
	}
	return fmt.Sprintf("%s; %s; writes for this parent pause for %s, a change of the parent ends the pause", text,
		r.rivals(ctx, trip.Field.Ref, d), r.Circuit.Pause)
}

// rivals names the other writers of a field. It reads the object live, because the cache keeps no
// managedFields.
func (r *run) rivals(ctx context.Context, ref object.Ref, d diff) string {
	const alone = "no other field manager owns it: the hook's answers differ, " +
		"or another controller of this engine writes it"
	if ref.Name == "" || d.resource.Plural == "" {
		return alone
	}
	managers, at, err := r.Writer.FieldManagers(ctx, d.resource, ref, d.Path, r.Apply.Manager)
	switch {
	case err != nil:
		return "who else writes it could not be read: " + err.Error()
	case len(managers) == 0:
		return alone
	}
	return fmt.Sprintf("%s is also written by %q", at, managers)
}
