package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
)

// ExportEvents is the input of export_events: which events are listed, of those that the
// submitter may see. All that were committed before the job was submitted are among them, and
// none that was published since.
type ExportEvents struct {
	Since     time.Time  `json:"since,omitzero" doc:"Events that were published at it or later."`
	Until     *time.Time `json:"until,omitempty" doc:"Events that were published before it."`
	EventType string     `json:"event_type,omitempty" pattern:"^(\\*|[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*(\\.\\*)?)$" patternDescription:"an exact type, prefix.* or *" maxLength:"128" doc:"An exact type, prefix.* or *, which is the default."`
}

// ExportLink is the result of an export that is too long to be a result itself.
type ExportLink struct {
	URL    string `json:"url" doc:"Where the list is read, with the same token."`
	Events int    `json:"events" doc:"How many events it has."`
}

// exportState is what an export goes on from.
type exportState struct {
	Before string `json:"before"` // the cursor of the next page
	Whole  bool   `json:"whole"`  // the last page was read
	Part   int    `json:"part"`
	Events int    `json:"events"`
	Bytes  int    `json:"bytes"`
}

const (
	exportPage   = 200
	exportBytes  = 4 << 20   // of the bodies of a page, and so of a part
	inlineExport = 512 << 10 // bytes, up to which the result is the list itself
	exportsKept  = 30 * 24 * time.Hour
	exportsOwned = 20              // of one owner are kept: those that have ended last
	sendPart     = 2 * time.Minute // for the reader of an export, for each part
)

func (s *service) checkExport(_ context.Context, _ *sql.Tx, _ caller, input json.RawMessage) error {
	var in ExportEvents
	if err := json.Unmarshal(input, &in); err != nil {
		return badInput(err)
	}
	if in.Until != nil && !in.Since.IsZero() && !in.Since.Before(*in.Until) {
		return invalid("body.input.until", "it must be later than since")
	}
	return nil
}

// exportEvents lists the events that the submitter may see, page by page: each commits what it
// has found, and the cursor, together. It does not read the feed, which has an event only once
// it is expanded: the list has all that was committed before the job was submitted.
func (s *service) exportEvents(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
	in, err := inputOf[ExportEvents](run)
	if err != nil {
		return nil, err
	}
	state, err := stateOf[exportState](run)
	if err != nil {
		return nil, err
	}
	j := run.Job()
	// Events that come while it runs are not exported.
	query := history.EventQuery{Type: in.EventType, Viewer: j.Owner, Since: in.Since, Until: j.CreatedAt, Limit: exportPage, Bytes: exportBytes}
	if in.Until != nil && in.Until.Before(query.Until) {
		query.Until = asBound(in.Until)
	}
	if !query.Since.IsZero() && !query.Since.Before(query.Until) {
		state.Whole = true // nothing is published since a time to come
	}
	for !state.Whole {
		if err := s.mayExport(ctx, j.Owner); err != nil {
			return nil, forGood(err)
		}
		query.Cursor = state.Before
		page, next, err := s.history.Events(ctx, query)
		if err != nil {
			return nil, forGood(err)
		}
		if state, err = s.exportPart(ctx, run, page, next, state); err != nil {
			return nil, err
		}
	}
	run.Progress(int64(state.Events), int64(state.Events))
	if state.Bytes > inlineExport {
		return json.Marshal(ExportLink{URL: "/jobs/" + j.ID + "/events", Events: state.Events})
	}
	var out bytes.Buffer
	err = s.export(ctx, j.ID, state.Part, &out)
	return out.Bytes(), err
}

// mayExport refuses a subscriber who was deleted since the job was submitted.
func (s *service) mayExport(ctx context.Context, owner string) error {
	if owner == sender.Operator {
		return nil
	}
	_, err := s.registry.Subscriber(ctx, owner)
	return err
}

// exportPart keeps a page as a part, with its oldest event first.
func (s *service) exportPart(ctx context.Context, run *jobs.Run[*sql.Tx], page []sender.StoredEvent, before string, from exportState) (next exportState, err error) {
	next = from
	next.Before, next.Whole = before, before == ""
	var part []byte
	for i := range slices.Backward(page) {
		if part != nil {
			part = append(part, ',')
		}
		part = feed.AppendEvent(part, &page[i])
	}
	next.Events += len(page)
	next.Bytes += len(part)
	if part != nil {
		next.Part++
	}
	return next, run.InTx(ctx, func(tx *sql.Tx, step *jobs.Step) error {
		if part != nil {
			if _, err := s.db.exec(ctx, tx, "INSERT INTO server_exports VALUES ($1, $2, $3, $4)", run.Job().ID, next.Part, string(part), time.Now().UnixMicro()); err != nil {
				return err
			}
		}
		step.Progress(int64(next.Events), 0) // nobody knows how many there will be
		return save(step, next)
	})
}

// keptParts is how many parts a job's export has. Once the first of them are forgotten,
// it is not there any more: what remains would pass for all of it.
func (s *service) keptParts(ctx context.Context, j jobs.Job) (last int, err error) {
	var kept int
	err = s.db.row(ctx, nil, "SELECT count(*), coalesce(max(part), 0) FROM server_exports WHERE job = $1", j.ID).Scan(&kept, &last)
	if err == nil && (kept < last || kept == 0 && string(j.Result) != "[]") {
		err = problem(http.StatusGone, "what the job has found is not kept any more: submit another job")
	}
	return last, err
}

// export writes an export with a number of parts as a JSON list, with the oldest event first: the
// last part has the oldest events.
func (s *service) export(ctx context.Context, job string, parts int, to interface{ Write(b []byte) (int, error) }) error {
	if _, err := to.Write([]byte("[")); err != nil {
		return err
	}
	for part := parts; part >= 1; part-- {
		var events string
		if err := s.db.row(ctx, nil, "SELECT events FROM server_exports WHERE job = $1 AND part = $2", job, part).Scan(&events); err != nil {
			return err
		}
		if part < parts {
			events = "," + events
		}
		if _, err := to.Write([]byte(events)); err != nil {
			return err
		}
	}
	_, err := to.Write([]byte("]"))
	return err
}

func (s *server) exportOperations() {
	handle(s, operation{method: http.MethodGet, path: "/jobs/{id}/events", id: "get-export", summary: "Read what a job of the kind export_events has found", tag: "Jobs", long: true, errors: []int{http.StatusConflict, http.StatusGone}}, s.getExport)
	// The answer is written piece by piece, so that its type says nothing of it.
	events := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[[]Event](), true, "")
	s.api.OpenAPI().Paths["/jobs/{id}/events"].Get.Responses["200"].Content = map[string]*huma.MediaType{"application/json": {Schema: events}}
}

type exportAnswer struct {
	Body func(huma.Context)
}

func (s *server) getExport(ctx context.Context, c caller, in *JobPath) (*exportAnswer, error) {
	done, err := s.maySend(c)
	if err != nil {
		return nil, err
	}
	j, parts, err := s.exportOf(ctx, c, in.ID)
	if err != nil {
		done()
		return nil, err
	}
	return &exportAnswer{func(hc huma.Context) {
		defer done()
		hc.SetHeader("Content-Type", "application/json")
		_, w := humago.Unwrap(hc)
		if err := s.export(ctx, j.ID, parts, patient{w}); err != nil && ctx.Err() == nil {
			s.log.Error("an export broke off", "job", j.ID, "error", err)
			panic(http.ErrAbortHandler) // so that nobody takes it for whole
		}
	}}, nil
}

// patient gives the reader of an answer some time for each part. The server's own time is for the
// whole of an answer, which is too short for a long one.
type patient struct{ http.ResponseWriter }

// Write implements io.Writer.
func (p patient) Write(part []byte) (int, error) {
	// Where there is no controller, there is no deadline either.
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(sendPart))
	return p.ResponseWriter.Write(part)
}

// exportOf is a job that has found events, and in how many parts they are kept.
func (s *service) exportOf(ctx context.Context, c caller, id string) (j jobs.Job, parts int, err error) {
	j, err = s.jobs.Get(ctx, c.key(id))
	if err == nil && j.Kind != "export_events" {
		err = jobs.ErrNotFound
	}
	if err != nil {
		return j, 0, jobRefusal(err)
	}
	if j.Status != jobs.Succeeded {
		return j, 0, problem(http.StatusConflict, "the job has not succeeded: its status is "+string(j.Status))
	}
	parts, err = s.keptParts(ctx, j)
	return j, parts, err
}

// dropExports removes what nobody needs once a job has ended: the parts of an export that has not
// succeeded, and those of the owner's exports before the last ones.
func (s *service) dropExports(ctx context.Context, ended jobs.Job) {
	if ended.Kind != "export_events" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	drop := []jobs.Job{ended}
	var err error
	if ended.Status == jobs.Succeeded {
		drop, err = s.lastExports(ctx, ended)
		slices.SortFunc(drop, func(a, b jobs.Job) int { return b.FinishedAt.Compare(a.FinishedAt) })
		drop = drop[min(len(drop), exportsOwned):]
	}
	if err == nil && len(drop) > 0 {
		err = s.db.inTx(ctx, func(tx *sql.Tx) error {
			for _, j := range drop {
				if _, err := s.db.exec(ctx, tx, "DELETE FROM server_exports WHERE job = $1", j.ID); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		s.log.Error("parts of exports that are not needed could not be removed; they go when they are too old", "job", ended.ID, "error", err)
	}
}

// lastExports are the exports of an owner that have succeeded, the newest first: as many as are
// kept, and some more, for those that others have brought to their end meanwhile.
func (s *service) lastExports(ctx context.Context, ended jobs.Job) (all []jobs.Job, err error) {
	q := jobs.Query{Owner: ended.Owner, Kind: ended.Kind, Status: jobs.Succeeded}
	for first := true; first || q.Cursor != "" && len(all) < exportsOwned+5; first = false {
		var page []jobs.Job // short where results are large
		q.Limit = exportsOwned + 5 - len(all)
		if page, q.Cursor, err = s.jobs.List(ctx, q); err != nil {
			return nil, err
		}
		all = append(all, page...)
	}
	return all, nil
}

// forgetExports removes those that are too old.
func (s *service) forgetExports(ctx context.Context) error {
	return s.db.inTx(ctx, func(tx *sql.Tx) error {
		_, err := s.db.exec(ctx, tx, "DELETE FROM server_exports WHERE created_at <= $1", time.Now().Add(-min(exportsKept, s.options.retention.Events)).UnixMicro())
		return err
	})
}
