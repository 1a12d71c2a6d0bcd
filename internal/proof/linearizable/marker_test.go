package linearizable_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

const (
	objects  = 12
	versions = 6 // of each object, and so events
	copies   = 2 // of each event, by each worker
)

// markerOp is a request with one event. An event of an object has its version's number.
type markerOp struct {
	Client       int
	Object       int
	Version      int
	Call, Return int64
	Result       string // applied, duplicate, stale; or "": nothing was done
}

// markerState is the state of an object at the receiver.
type markerState struct {
	marked  int // the versions whose events have a marker, as bits
	version int
}

// markers is the model: how requests change an object, one after the other.
var markers = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		parts = make([][]porcupine.Operation, objects)
		for _, op := range history {
			object := op.Input.(markerOp).Object
			parts[object] = append(parts[object], op)
		}
		return parts
	},
	Init: func() any { return markerState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(markerState), input.(markerOp)
		bit := 1 << op.Version
		if op.Result == "" {
			return true, s
		}
		want, next := "duplicate", s
		if s.marked&bit == 0 {
			want, next.marked = "stale", s.marked|bit
			if op.Version > s.version {
				want, next.version = "applied", op.Version
			}
		}
		return op.Result == want, next
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// forgetful is a store that finds no event marked.
type forgetful struct{ dedup.Store[*sql.Tx] }

func (f forgetful) Mark(ctx context.Context, tx *sql.Tx, scope, id string, at time.Time) (bool, error) {
	_, err := f.Store.Mark(ctx, tx, scope, id, at)
	return true, err
}

func ring() (*signing.Keyring, error) {
	secret, err := signing.ParseSecret("whsec_" + "bGluZWFybGluZWFybGluZWFybGluZWFybGluZWFyMTI=")
	if err != nil {
		return nil, err
	}
	return signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
}

// receive posts every event twice with each worker, in an order of its own, to a
// receiver of the process's own.
func receive(_ context.Context, o order, p *place) (any, error) {
	keys, err := ring()
	if err != nil {
		return nil, err
	}
	verifier, err := signing.NewVerifier(keys, nil)
	if err != nil {
		return nil, err
	}
	store := p.dedup
	if o.Defect {
		store = forgetful{store}
	}
	rcv, err := receiver.New(verifier, receiver.SQL(p.db, nil), store, "default", &receiver.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	handler := rcv.Handler(receiver.State(func(context.Context, *sql.Tx, receiver.Event) error { return nil }))
	var mu sync.Mutex
	var all []markerOp
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			var own []markerOp
			for _, n := range rand.Perm(objects * versions * copies) {
				op := markerOp{Client: o.Process*workers + i, Object: n % objects, Version: 1 + n/objects%versions}
				op.Call = clock()
				op.Result = post(handler, keys, op)
				op.Return = clock()
				own = append(own, op)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	wg.Wait()
	return all, nil
}

func post(handler http.Handler, keys *signing.Keyring, op markerOp) string {
	now := time.Now()
	id := fmt.Sprintf("evt_%d_%d", op.Object, op.Version)
	body := fmt.Appendf(nil, `{"id":%q,"type":"thing.made","object":{"type":"thing","id":"%d"},"version":%d}`, id, op.Object, op.Version)
	req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	if err := signing.Sign(req.Header, signing.DefaultSchemes(), id, now, body, keys); err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, req)
	var answer struct{ Result string }
	switch w.Code {
	case http.StatusOK:
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			panic(err)
		}
	case http.StatusServiceUnavailable: // the same event was being handled, or the request's time was over
	default:
		panic(fmt.Sprint("answered ", w.Code, " ", w.Body))
	}
	return answer.Result
}

func markerHistory(t *testing.T, o order) (ops []porcupine.Operation) {
	t.Helper()
	o.Task = "markers"
	results := map[string]int{}
	for _, op := range histories[markerOp](t, o) {
		ops = append(ops, porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: op.Return})
		results[op.Result]++
	}
	t.Log(results)
	return ops
}

// The histories of answers are linearizable: an event is applied at most once, and
// never an older one over a newer one.
func TestMarkers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o order, _ *place) {
		require.Equal(t, porcupine.Ok, linearizable(markers, markerHistory(t, o)))
	})
}

// The test finds a receiver that forgets its markers.
func TestMarkersForgotten(t *testing.T) {
	t.Parallel()
	foundOut(t, func(t *testing.T, o order, _ *place) bool {
		return linearizable(markers, markerHistory(t, o)) == porcupine.Illegal
	})
}
