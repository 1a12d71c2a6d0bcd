package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surehook/surehook/sender/jobs"
)

// kind is a kind of job: its input, its submitters, and its work.
type kind struct {
	operatorOnly bool
	input        reflect.Type
	results      []reflect.Type                                                               // beside those that other operations have
	check        func(ctx context.Context, tx *sql.Tx, c caller, input json.RawMessage) error // beyond the schema; nil: nothing
	run          func(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error)
	concurrency  int // in one process; 0: the library's default
	ofOne        int // of them, jobs of one owner; 0: all
}

func (s *service) kinds() map[string]kind {
	return map[string]kind{
		"import_subscribers": {operatorOnly: true, input: reflect.TypeFor[ImportSubscribers](), results: []reflect.Type{reflect.TypeFor[Imported]()}, run: s.importSubscribers},
		"replay":             {input: reflect.TypeFor[ReplayDeliveries](), results: []reflect.Type{reflect.TypeFor[Replayed]()}, check: s.checkReplay, run: s.replay, concurrency: replaysRun, ofOne: replaysOfOne},
		replayDryRun:         {input: reflect.TypeFor[ReplayDeliveries](), run: s.replay, concurrency: dryRuns, ofOne: dryRunsOfOne},
		"export_events":      {input: reflect.TypeFor[ExportEvents](), results: []reflect.Type{reflect.TypeFor[ExportLink]()}, check: s.checkExport, run: s.exportEvents, concurrency: exportsRun, ofOne: exportsOfOne},
	}
}

// jobTries is generous, because a try that is lost with its process counts. A kind itself
// reports a job that can never succeed.
const jobTries = 100

func (s *service) jobKinds() (all []jobs.Kind[*sql.Tx]) {
	for name, k := range s.kinds() {
		all = append(all, jobs.Kind[*sql.Tx]{Name: name, Run: k.run, Concurrency: k.concurrency, OwnerConcurrency: k.ofOne, MaxTries: jobTries})
	}
	return all
}

// admit checks who asks for a job, and with what input, by the same types that
// describe it in the OpenAPI document and that the kind works with. It returns the
// input as it is kept.
func (s *server) admit(c caller, n NewJob) (json.RawMessage, error) {
	k, ok := s.kinds()[n.Kind]
	if !ok {
		return nil, invalid("body.kind", fmt.Sprintf("there is no kind %q", n.Kind))
	}
	if k.operatorOnly && !c.operator() {
		return nil, problem(http.StatusForbidden, "this kind of job is for the operator's token alone")
	}
	var parsed any
	if err := json.Unmarshal(n.Input, &parsed); err != nil {
		return nil, err // the body was JSON, so its part is
	}
	if parsed == nil { // its schema lets null pass
		return nil, invalid("body.input", "it is required")
	}
	schemas := s.api.OpenAPI().Components.Schemas
	at, found := huma.NewPathBuffer(nil, 0), huma.ValidateResult{}
	at.Push("body")
	at.Push("input")
	huma.Validate(schemas, schemas.Schema(k.input, true, ""), at, huma.ModeWriteToServer, parsed, &found)
	if len(found.Errors) > 0 {
		return nil, fromHuma(http.StatusUnprocessableEntity, "the input is not one of this kind", found.Errors...).(*Problem)
	}
	return n.Input, nil
}

// checked is what a kind checks beyond its schema. It may be otherwise when a request is
// repeated, so it is checked in the transaction that submits the job.
func (s *service) checked(ctx context.Context, tx *sql.Tx, c caller, kind string, input json.RawMessage) error {
	if check := s.kinds()[kind].check; check != nil {
		return check(ctx, tx, c, input)
	}
	return nil
}

// describeKinds adds the kinds' inputs and results to the OpenAPI document.
func (s *server) describeKinds() {
	for _, k := range s.kinds() {
		for _, one := range append(k.results, k.input) {
			s.api.OpenAPI().Components.Schemas.Schema(one, true, "")
		}
	}
}

// badInput refuses an input that fits its schema and not its type: see notWhole.
func badInput(err error) *Problem {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return invalid("body.input", "it is not one of this kind")
	}
	at := notWhole("body.input", wrong.Field)
	return invalid(at.Location, at.Message)
}

// inputOf reads a job's input, which was checked when it was submitted.
func inputOf[I any](run *jobs.Run[*sql.Tx]) (in I, err error) {
	err = json.Unmarshal(run.Job().Input, &in)
	if err != nil {
		err = jobs.Permanent(errors.New("the input is not one of this kind"))
	}
	return in, err
}

// stateOf reads the state from which a run goes on: the zero value for the first run.
func stateOf[S any](run *jobs.Run[*sql.Tx]) (state S, err error) {
	if text := run.State(); text != nil {
		err = json.Unmarshal(text, &state)
	}
	return state, err
}

// save keeps the state of a run in the step's transaction.
func save(step *jobs.Step, state any) error {
	text, err := json.Marshal(state)
	if err == nil {
		step.Save(text)
	}
	return err
}
