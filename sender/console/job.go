package console

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/jobs"
)

// jobRow is a job in a list.
type jobRow struct {
	jobs.Job
	State look.State
	Took  time.Duration // until now, or its end; 0: it has not begun
}

// Share is how much of it is done, from 0 to 1.
func (j *jobRow) Share() float64 {
	switch {
	case j.Status == jobs.Succeeded:
		return 1
	case j.Progress == nil || j.Progress.Total <= 0:
		return 0
	}
	return float64(j.Progress.Done) / float64(j.Progress.Total)
}

// Fill is the class of its meter.
func (j *jobRow) Fill() string {
	switch j.Status {
	case jobs.Succeeded:
		return "f-ok"
	case jobs.Failed:
		return "f-bad"
	case jobs.Cancelled:
		return "f-idle"
	}
	return "f-accent"
}

// Live tells whether it can be cancelled.
func (j *jobRow) Live() bool { return !j.Status.Finished() && !j.CancelRequested }

// Outcome is what it has come to, in a few words.
func (j *jobRow) Outcome() string {
	switch {
	case j.Error != "":
		return look.Plain(j.Error)
	case j.CancelRequested && !j.Status.Finished():
		return "it is being cancelled"
	case j.Progress != nil && j.Progress.Total > 0:
		return look.Count(j.Progress.Done) + " of " + look.Count(j.Progress.Total)
	case j.Progress != nil:
		return look.Count(j.Progress.Done)
	}
	return ""
}

var jobStates = map[jobs.Status]look.State{
	jobs.Queued: {Icon: "wait", Tone: "idle", Word: "Queued"}, jobs.Running: {Icon: "flight", Tone: "live", Word: "Running"},
	jobs.Succeeded: {Icon: "ok", Tone: "ok", Word: "Succeeded"}, jobs.Failed: {Icon: "dead", Tone: "bad", Word: "Failed"}, jobs.Cancelled: {Icon: "cancel", Tone: "idle", Word: "Cancelled"},
}

func (c *Console) jobRow(j jobs.Job) jobRow {
	r := jobRow{Job: j, State: jobStates[j.Status]}
	switch {
	case j.StartedAt.IsZero():
	case j.FinishedAt.IsZero():
		r.Took = max(time.Millisecond, c.cfg.Now().Sub(j.StartedAt))
	default:
		r.Took = max(time.Millisecond, j.FinishedAt.Sub(j.StartedAt))
	}
	return r
}

type jobsView struct {
	Chips    []chip
	Narrowed []narrowing
	List     []jobRow
	Pages    look.Pages
	More     bool
}

func (c *Console) jobs(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	status := jobs.Status(q.Get("status"))
	list, next, err := c.Jobs.List(ctx, jobs.Query{Owner: q.Get("owner"), Kind: q.Get("kind"), Status: status, Cursor: q.Get("cursor"), Limit: pageSize})
	if err != nil {
		return view{}, err
	}
	v := jobsView{More: next != "", Pages: pagesOf(q, "cursor", next, countOf(len(list), "job", "jobs")+" on this page")}
	filters := url.Values{}
	for _, name := range []string{"owner", "kind", "status"} {
		if value := q.Get(name); value != "" {
			filters.Set(name, value)
		}
	}
	with := func(name, value string) string {
		to := maps.Clone(filters)
		if to.Del(name); value != "" {
			to.Set(name, value)
		}
		return "?" + to.Encode()
	}
	for _, n := range []struct{ field, name string }{{"owner", "customer"}, {"kind", "kind"}} {
		if value := filters.Get(n.field); value != "" {
			v.Narrowed = append(v.Narrowed, narrowing{n.name, look.Short(value), with(n.field, "")})
		}
	}
	v.Chips = []chip{{Link: with("status", ""), Title: "All", Current: status == ""}}
	for _, s := range []jobs.Status{jobs.Running, jobs.Queued, jobs.Failed, jobs.Succeeded, jobs.Cancelled} {
		v.Chips = append(v.Chips, chip{Link: with("status", string(s)), Title: jobStates[s].Word, State: jobStates[s], Current: status == s})
	}
	page := view{title: "Jobs", nav: "jobs", data: &v}
	for _, j := range list {
		v.List = append(v.List, c.jobRow(j))
		page.owners = append(page.owners, j.Owner)
	}
	return page, nil
}

func (c *Console) job(ctx context.Context, r *http.Request) (view, error) {
	j, err := c.Jobs.Get(ctx, jobs.Key{ID: r.PathValue("id")})
	if err != nil {
		return view{}, err
	}
	v := c.jobRow(j)
	return view{title: look.Plain(j.Kind), nav: "jobs", crumbs: []crumb{{"Jobs", "jobs"}}, owners: []string{j.Owner}, data: &v}, nil
}

func (c *Console) cancelJob(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PathValue("id")
	_, err := c.Jobs.Cancel(ctx, jobs.Key{ID: id})
	return "jobs/" + id, "cancelled", err
}
