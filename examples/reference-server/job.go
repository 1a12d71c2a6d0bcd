package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
)

// Job is work that was accepted, and runs or has ended.
type Job struct {
	ID          string          `json:"id" doc:"The job's id."`
	Kind        string          `json:"kind" doc:"What kind of work it is."`
	Status      string          `json:"status" enum:"queued,running,succeeded,failed,cancelled" doc:"How far it has come."`
	CallbackURL string          `json:"callback_url,omitempty" doc:"Where job.completed is posted to."`
	Progress    *Progress       `json:"progress" doc:"How much is done; null until it has begun."`
	Result      json.RawMessage `json:"result" doc:"What came of it, as its kind says; null unless it succeeded."`
	Error       *string         `json:"error" doc:"Why it failed; null unless it did."`
	CreatedAt   time.Time       `json:"created_at" doc:"When it was accepted."`
	StartedAt   *time.Time      `json:"started_at" doc:"When it began; null until then."`
	FinishedAt  *time.Time      `json:"finished_at" doc:"When it ended; null until then."`
}

// TransformSchema implements huma.SchemaTransformer: a job that has not begun has no
// progress, and huma cannot say by itself that a schema of its own may be null.
func (*Job) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	progress := *s.Properties["progress"]
	about := progress.Description
	progress.Description = ""
	s.Properties["progress"] = &huma.Schema{Description: about, AnyOf: []*huma.Schema{&progress, {Type: "null"}}}
	return s
}

// Progress is how much of a job is done, in units of its kind.
type Progress struct {
	Done  int64 `json:"done" doc:"What is done."`
	Total int64 `json:"total" doc:"How much there is to be done; 0: that is not known yet."`
}

func viewJob(j jobs.Job) Job {
	v := Job{
		ID: j.ID, Kind: shownKind(j), Status: string(j.Status), CallbackURL: j.CallbackURL, Progress: (*Progress)(j.Progress), Result: j.Result,
		CreatedAt: j.CreatedAt.UTC(), StartedAt: timeOrNull(j.StartedAt), FinishedAt: timeOrNull(j.FinishedAt),
	}
	if j.Status == jobs.Failed {
		v.Error = orNull(j.Error)
	}
	return v
}

// shownKind is the kind of a job as it was asked for.
func shownKind(j jobs.Job) string {
	if j.Kind == replayDryRun {
		return "replay"
	}
	return j.Kind
}

// NewJob asks for a job.
type NewJob struct {
	Kind        string          `json:"kind" enum:"import_subscribers,replay,export_events" doc:"What kind of work."`
	Input       json.RawMessage `json:"input" doc:"As the kind says: ImportSubscribers, ReplayDeliveries or ExportEvents."`
	CallbackURL string          `json:"callback_url,omitempty" minLength:"1" doc:"Where job.completed is posted to, signed with the submitter's secret."`
}

type (
	submitJob struct {
		Keyed
		Body NewJob
	}
	submittedJob struct {
		Location string `header:"Location"`
		Body     Job
	}
	JobPath struct {
		ID string `path:"id" doc:"The job's id."`
	}
	cancelJob struct {
		JobPath
		Keyed
	}
)

func (s *server) jobOperations() {
	const tag = "Jobs"
	handle(s, operation{method: http.MethodPost, path: "/jobs", id: "submit-job", summary: "Submit a job", tag: tag, status: http.StatusAccepted, long: s.challenger != nil, errors: []int{http.StatusForbidden, http.StatusConflict}}, s.submitJob)
	handle(s, operation{method: http.MethodGet, path: "/jobs", id: "list-jobs", summary: "List the caller's jobs, newest first", tag: tag, says: true}, s.listJobs)
	handle(s, operation{method: http.MethodGet, path: "/jobs/{id}", id: "get-job", summary: "Read a job", tag: tag}, s.getJob)
	handle(s, operation{method: http.MethodPost, path: "/jobs/{id}/cancel", id: "cancel-job", summary: "Cancel a job", tag: tag, status: http.StatusAccepted, errors: []int{http.StatusConflict}}, s.cancelJob)
}

func (s *server) submitJob(ctx context.Context, c caller, in *submitJob) (*submittedJob, error) {
	input, err := s.admit(c, in.Body)
	if err != nil {
		return nil, err
	}
	challenge := func() error {
		return s.challenged(ctx, c.id, newID("wsub_"), in.Body.CallbackURL, "body.callback_url")
	}
	body, err := challengedOnce(ctx, s.service, c, in.Key, in.Body, challenge, func(tx *sql.Tx) (Job, error) {
		var made jobs.Submitted
		if err := s.checked(ctx, tx, c, in.Body.Kind, input); err != nil {
			return Job{}, err
		}
		err := s.roomForJob(ctx, tx, c, in.Body.CallbackURL, func() (err error) {
			made, err = s.jobs.SubmitTx(ctx, tx, jobs.Submission{Kind: keptAs(in.Body), Input: input, Owner: c.id, CallbackURL: in.Body.CallbackURL})
			return err
		})
		return viewJob(made.Job), err
	})
	if err != nil {
		return nil, jobRefusal(err)
	}
	s.jobs.Wake()
	return &submittedJob{Location: "/jobs/" + body.ID, Body: body}, nil
}

func (s *server) listJobs(ctx context.Context, c caller, in *Page) (*answer[List[Job]], error) {
	cursor, err := in.cursor("jobs")
	if err != nil {
		return nil, err
	}
	page, next, err := s.jobs.List(ctx, jobs.Query{Owner: c.id, Cursor: cursor, Limit: in.Limit})
	if errors.Is(err, jobs.ErrInvalid) { // all but the cursor was looked at
		return nil, invalid("query.cursor", notOfAList)
	}
	if err != nil {
		return nil, err
	}
	return listOf("jobs", page, next, viewJob), nil
}

// key names a job that the caller may see: the operator, everybody's.
func (c caller) key(id string) jobs.Key { return jobs.Key{ID: id, Owner: c.scope()} }

func (s *server) getJob(ctx context.Context, c caller, in *JobPath) (*answer[Job], error) {
	j, err := s.jobs.Get(ctx, c.key(in.ID))
	if err != nil {
		return nil, jobRefusal(err)
	}
	return &answer[Job]{viewJob(j)}, nil
}

func (s *server) cancelJob(ctx context.Context, c caller, in *cancelJob) (*answer[Job], error) {
	var j jobs.Job // stays empty if it is a repeat
	body, err := once(ctx, s.answers, c, in.Key, nil, func(tx *sql.Tx) (_ Job, err error) {
		j, err = s.jobs.CancelTx(ctx, tx, c.key(in.ID))
		return viewJob(j), err
	})
	if err != nil {
		return nil, jobRefusal(err)
	}
	switch {
	case j.Status.Finished():
		s.finished(ctx, j)
	case j.ID != "":
		// It changes nothing, and lets its worker know at once. It may have ended meanwhile.
		_, _ = s.jobs.Cancel(ctx, c.key(in.ID))
	}
	return &answer[Job]{body}, nil
}

func jobRefusal(err error) error {
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return notFound("job")
	case errors.Is(err, jobs.ErrFinished):
		return problem(http.StatusConflict, "the job has ended: there is nothing to cancel")
	case errors.Is(err, jobs.ErrInvalid):
		return invalid("body", plain(err))
	case errors.Is(err, sender.ErrInvalid): // nothing but the URL is the library's to check
		return invalid("body.callback_url", located(err)[0].Message)
	}
	return err
}
