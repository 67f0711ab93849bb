package session

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/proto"
)

// thing is an object of the test's engine.
type thing struct{ namespace, name, body string }

func (t *thing) Namespace() string { return t.namespace }
func (t *thing) Name() string      { return t.name }

func encodeThing(t *thing) *hookv1.ObservedObject {
	return &hookv1.ObservedObject{
		ApiVersion: "v1", Kind: "Thing", Namespace: t.namespace, Name: t.name, Body: []byte(t.body),
	}
}

// state is the observed state of one subject.
type state struct {
	controller, parent *thing
	children, related  []*thing
}

// question writes a state as the engine asks about it.
func (s *state) question(subject string) Question[*thing] {
	return Question[*thing]{
		Subject: subject, Method: compositev1.CompositeHookService_Sync_FullMethodName, Envelope: s.request(false),
		Slots: []Slot[*thing]{
			{ControllerSlot, []*thing{s.controller}},
			{ParentSlot, []*thing{s.parent}},
			{uint32(ChildSlot(0)), s.children},
			{uint32(RelatedSlot(0)), s.related},
		},
	}
}

// request writes a state as one whole request: what the hook must see.
func (s *state) request(whole bool) *compositev1.SyncRequest {
	children := &hookv1.ObjectGroup{ApiVersion: "v1", Kind: "Thing"}
	items := &hookv1.RelatedItems{}
	r := &compositev1.SyncRequest{
		Children: []*hookv1.ObjectGroup{children},
		Related:  []*hookv1.RelatedGroup{{Resource: "things", Result: &hookv1.RelatedGroup_Items{Items: items}}},
	}
	if !whole {
		return r
	}
	r.Controller, r.Parent = encodeThing(s.controller), encodeThing(s.parent)
	for _, c := range s.children {
		children.Objects = append(children.Objects, encodeThing(c))
	}
	for _, c := range s.related {
		items.Objects = append(items.Objects, encodeThing(c))
	}
	return r
}

// answerTo is the test's hook: a function of the whole request.
func answerTo(r *compositev1.SyncRequest) *compositev1.SyncResponse {
	out := &compositev1.SyncResponse{Status: []byte(`{"from":"` + string(r.GetParent().GetBody()) + `"}`)}
	groups := [][]*hookv1.ObservedObject{
		r.GetChildren()[0].GetObjects(), r.GetRelated()[0].GetItems().GetObjects(),
	}
	for _, g := range groups {
		for _, o := range g {
			if len(o.GetBody())%3 != 0 { // some come and go
				out.Children = append(out.Children,
					&hookv1.DesiredObject{Body: []byte("want " + o.GetName() + " " + string(o.GetBody()))})
			}
		}
	}
	if len(r.GetParent().GetBody())%2 == 0 {
		slices.Reverse(out.Children)
	}
	return out
}

// fixture is an engine, a hook, and a network between them that may lose, double and reorder
// messages.
type fixture struct {
	t      testing.TB
	random *rand.Rand
	faults float64 // how probable a fault is for one message

	states  []*state
	pool    []*thing
	version int
	// hookBytes is the hook's limit of what it holds; one in four runs has a small one.
	hookBytes int
	// hookHas and engineHas are the capabilities of the two sides.
	hookHas, engineHas []streamv1.Capability
	// capabilitiesChange reports whether other builds of both sides have other capabilities.
	capabilitiesChange bool

	engine   *Engine[*thing]
	hook     *Hook
	memories map[string]*State
	up       []*streamv1.HookMessage
	down     []*streamv1.EngineMessage
	work     []*Work
	asked    map[uint64]*asking // by ticket
	history  map[string]*asking // by the number that travels with the question: those given up included
	tally    tally
}

// asking is a question in progress: how it was when it was asked.
type asking struct {
	subject  int
	want     *compositev1.SyncRequest
	response *compositev1.SyncResponse
}

type tally struct{ operations, answers, lost, breaks, restarts, reconnects, dropped, doubled, swapped, forgotten int }

func newFixture(t testing.TB, seed uint64, faults float64) *fixture {
	w := &fixture{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), faults: faults,
		memories: map[string]*State{}, asked: map[uint64]*asking{}, history: map[string]*asking{},
	}
	controller := &thing{name: "controller", body: "c"}
	for range 12 {
		w.pool = append(w.pool, w.thing())
	}
	for range 4 {
		s := &state{controller: controller, parent: w.thing()}
		w.states = append(w.states, s)
		for range 5 {
			w.toggle(&s.children, w.thing())
		}
	}
	engineBytes := 0
	hookBytes := 0
	if seed%4 == 1 {
		engineBytes = 9000
	}
	if seed%4 == 2 {
		hookBytes = 5000
	}
	w.hookBytes = hookBytes
	// Two in three runs lack some capabilities, on either side.
	w.hookHas, w.engineHas = w.features(seed%3 != 0), w.features(seed%3 == 2)
	w.capabilitiesChange = seed%5 > 2
	w.engine = NewEngine(EngineConfig[*thing]{
		SessionID: "s", Encode: encodeThing, StateBytes: engineBytes, Capabilities: w.engineHas,
	})
	w.reconnect()
	return w
}

// features returns all capabilities, or some of them and one that is unknown.
func (w *fixture) features(some bool) []streamv1.Capability {
	if !some {
		return allCapabilities
	}
	out := []streamv1.Capability{99}
	for _, c := range allCapabilities {
		if w.random.IntN(2) == 0 {
			out = append(out, c)
		}
	}
	return out
}

// thing makes one; some are larger than others.
func (w *fixture) thing() *thing {
	w.version++
	return &thing{
		namespace: []string{"", "a", "b"}[w.random.IntN(3)], name: fmt.Sprintf("t%d", w.random.IntN(30)),
		body: fmt.Sprint(w.random.IntN(10), w.version, strings.Repeat(".", w.random.IntN(60))),
	}
}

// toggle takes a thing into a list, in the place of one with its name, or takes that out.
func (w *fixture) toggle(list *[]*thing, t *thing) {
	next := slices.Clone(*list)
	at, found := slices.BinarySearchFunc(next, t, compareObserved[*thing])
	switch {
	case found && w.random.IntN(2) == 0:
		next = slices.Delete(next, at, at+1)
	case found:
		next[at] = t
	default:
		next = slices.Insert(next, at, t)
	}
	*list = next
}

// reconnect ends the stream and begins another. The hook keeps its memory.
func (w *fixture) reconnect() {
	w.engine.Disconnect()
	w.outcomes()
	if w.hook != nil {
		w.hook.Lost()
	}
	w.up = nil
	w.down = nil
	w.work = nil
	if w.capabilitiesChange && w.random.IntN(2) == 0 {
		w.hookHas, w.engineHas = w.features(w.random.IntN(2) == 0), w.features(w.random.IntN(2) == 0)
		w.engine.config.Capabilities = w.engineHas
	}
	w.hook = NewHook(HookConfig{Calls: 3, Capabilities: w.hookHas, State: func(id string) *State {
		if w.memories[id] == nil {
			w.memories[id] = NewState(w.hookBytes)
		}
		return w.memories[id]
	}})
	w.engine.Connect()
	w.tally.reconnects++
}

// ask puts a question about a subject without one in progress.
func (w *fixture) ask(subject int) {
	for _, a := range w.asked {
		if a.subject == subject {
			return
		}
	}
	if !w.engine.Open() {
		return
	}
	s := w.states[subject]
	a := &asking{subject: subject, want: s.request(true)}
	a.response = answerTo(a.want)
	q := s.question(fmt.Sprint(subject))
	number := fmt.Sprint(len(w.history))
	q.TraceContext = map[string]string{"number": number}
	w.history[number] = a
	w.asked[w.engine.Ask(q)] = a
}

// carry moves messages, with the network's faults.
func (w *fixture) carry() {
	w.down = append(w.down, w.engine.Outbox()...)
	w.up = append(w.up, w.hook.Outbox()...)
	faulty(w, &w.down)
	faulty(w, &w.up)
	var err error
	if len(w.down) > 0 {
		var got HookReceived
		got, err = w.hook.Receive(through(w.t, w.down[0]))
		if got.Work != nil {
			w.see(got.Work)
		}
		w.down = w.down[1:]
	} else if len(w.up) > 0 {
		_, err = w.engine.Receive(through(w.t, w.up[0]))
		w.up = w.up[1:]
	}
	w.outcomes()
	if err != nil {
		w.tally.breaks++
		if w.faults == 0 {
			w.t.Fatalf("on a network without faults: %v", err)
		}
		w.reconnect()
	}
}

// through is a message as it comes out of a wire.
func through[M proto.Message](t testing.TB, m M) M {
	data, err := proto.Marshal(m)
	out := m.ProtoReflect().New().Interface().(M)
	if err == nil {
		err = proto.Unmarshal(data, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// faulty harms the queue of one direction.
func faulty[M proto.Message](w *fixture, queue *[]M) {
	q := *queue
	if len(q) == 0 || w.random.Float64() >= w.faults {
		return
	}
	at := w.random.IntN(len(q))
	switch w.random.IntN(3) {
	case 0:
		*queue = slices.Delete(q, at, at+1)
		w.tally.dropped++
	case 1:
		*queue = slices.Insert(q, at, q[at])
		w.tally.doubled++
	default:
		with := w.random.IntN(len(q))
		q[at], q[with] = q[with], q[at]
		w.tally.swapped++
	}
}

// see compares what the hook sees with the whole request.
func (w *fixture) see(work *Work) {
	if got, want := work.Request, w.history[work.TraceContext["number"]].want; !proto.Equal(got, want) {
		w.t.Fatalf("the hook sees\n%.5000v\nwant\n%.5000v", got, want)
	}
	w.work = append(w.work, work)
}

// outcomes compares the answers with those to whole requests.
func (w *fixture) outcomes() {
	for _, o := range w.engine.Outcomes() {
		a := w.asked[o.CallID]
		delete(w.asked, o.CallID)
		switch {
		case a == nil:
			w.t.Fatalf("an outcome for ticket %d, which is not under way", o.CallID)
		case o.Lost:
			w.tally.lost++
		case o.Fault != nil || o.Refused != nil:
			if w.faults == 0 {
				w.t.Fatalf("on a network without faults: %v %v", o.Fault, o.Refused)
			}
		case !proto.Equal(o.Response, a.response):
			w.t.Fatalf("got the response\n%.5000v\nwant\n%.5000v", o.Response, a.response)
		default:
			w.tally.answers++
		}
	}
}

// step is one random operation.
func (w *fixture) step() {
	w.tally.operations++
	s := w.states[w.random.IntN(len(w.states))]
	switch n := w.random.IntN(100); {
	case n < 12:
		w.toggle(&s.children, w.thing())
	case n < 20:
		w.toggle(&s.children, w.pool[w.random.IntN(len(w.pool))])
	case n < 26:
		w.toggle(&s.related, w.pool[w.random.IntN(len(w.pool))])
	case n < 28:
		s.parent = w.thing()
	case n < 29:
		s.children = nil
	case n < 50:
		w.ask(w.random.IntN(len(w.states)))
	case n < 60 && len(w.work) > 0:
		at := w.random.IntN(len(w.work))
		w.hook.Answer(w.work[at], answerTo(w.work[at].Request.(*compositev1.SyncRequest)))
		w.work = slices.Delete(w.work, at, at+1)
	case n == 60 && w.random.IntN(8) == 0:
		w.reconnect()
	case n == 61 && w.random.IntN(10) == 0: // the hook restarts
		w.memories = map[string]*State{}
		w.tally.restarts++
		w.reconnect()
	case n == 62:
		w.engine.Forget(fmt.Sprint(w.random.IntN(len(w.states))))
		w.tally.forgotten++
	case n == 63:
		w.cancel()
	default:
		w.carry()
	}
}

// cancel gives up one question; another about the same subject may follow immediately.
func (w *fixture) cancel() {
	for _, callID := range slices.Sorted(maps.Keys(w.asked)) {
		w.engine.Cancel(callID)
		delete(w.asked, callID)
		return
	}
}

// add sums up what two runs did.
func (t *tally) add(other tally) {
	t.operations += other.operations
	t.answers += other.answers
	t.lost += other.lost
	t.breaks += other.breaks
	t.restarts += other.restarts
	t.reconnects += other.reconnects
	t.dropped += other.dropped
	t.doubled += other.doubled
	t.swapped += other.swapped
	t.forgotten += other.forgotten
}

func (c *Counts) add(other Counts) {
	c.Snapshots += other.Snapshots
	c.Changes += other.Changes
	c.Nacks += other.Nacks
	c.Mismatches += other.Mismatches
	c.Resumed += other.Resumed
	c.Dropped += other.Dropped
}
