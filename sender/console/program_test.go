package console_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/jobs"
)

// customers are those that the embedding program knows.
type customers struct{}

func nameOf(id string) string {
	if id == "sub_ada" {
		return "Ada & Sons " + hostile
	}
	rest, _ := strings.CutPrefix(id, "sub_")
	return strings.ToUpper(rest[:1]) + strings.ReplaceAll(rest[1:], "_", " ")
}

func (customers) NameOf(_ context.Context, ids []string) (map[string]string, error) {
	names := map[string]string{}
	for _, id := range ids {
		names[id] = nameOf(id)
	}
	return names, nil
}

func (c customers) Customers(_ context.Context, q console.CustomerQuery) ([]console.Customer, string, error) {
	one, _ := c.Customer(context.Background(), "sub_ada")
	if !strings.Contains(strings.ToLower(one.Name+one.ID), strings.ToLower(q.Text)) {
		return nil, "", nil
	}
	return []console.Customer{one}, "", nil
}

func (customers) Customer(_ context.Context, id string) (console.Customer, error) {
	if id == "sub_large" {
		return largeCustomer(), nil
	}
	return console.Customer{ID: id, Name: nameOf(id), CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Attributes: []console.Attribute{{Name: hostile, Value: hostile}}}, nil
}

// largeCustomer has as many attributes, and as long ones, as its program has let it have.
func largeCustomer() console.Customer {
	c := console.Customer{ID: "sub_large", Name: "Large", Attributes: []console.Attribute{{Name: strings.Repeat("n", 1<<20), Value: strings.Repeat("é", 1<<19)}}}
	for range 100_000 {
		c.Attributes = append(c.Attributes, console.Attribute{Name: "a", Value: "1"})
	}
	return c
}

// bedJobs are the program's jobs: one that runs, and one that has failed.
type bedJobs struct {
	mu   sync.Mutex
	list []jobs.Job
}

func newBedJobs(b *bed) *bedJobs {
	now := b.clock()
	return &bedJobs{list: []jobs.Job{
		{ID: "job_1", Kind: "export", Owner: "sub_ada", Status: jobs.Running, Progress: &jobs.Progress{Done: 3, Total: 4}, Input: json.RawMessage(`{"<script>":"` + "\u202e" + `"}`), CreatedAt: now, StartedAt: now, CallbackURL: "https://ada.example/<b>"},
		{ID: "job_2", Kind: "import", Status: jobs.Failed, Error: hostile, Tries: 3, CreatedAt: now, StartedAt: now, FinishedAt: now.Add(time.Second)},
	}}
}

func (j *bedJobs) List(_ context.Context, q jobs.Query) (page []jobs.Job, _ string, _ error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range j.list {
		if q.Status == "" || q.Status == one.Status {
			page = append(page, one)
		}
	}
	return page, "", nil
}

func (j *bedJobs) find(id string) (*jobs.Job, error) {
	i := slices.IndexFunc(j.list, func(one jobs.Job) bool { return one.ID == id })
	if i < 0 {
		return nil, jobs.ErrNotFound
	}
	return &j.list[i], nil
}

func (j *bedJobs) Get(_ context.Context, k jobs.Key) (jobs.Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one, err := j.find(k.ID)
	if err != nil {
		return jobs.Job{}, err
	}
	return *one, nil
}

func (j *bedJobs) Cancel(_ context.Context, k jobs.Key) (jobs.Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one, err := j.find(k.ID)
	if err != nil {
		return jobs.Job{}, err
	}
	if one.Status.Finished() {
		return *one, jobs.ErrFinished
	}
	one.Status, one.FinishedAt = jobs.Cancelled, one.StartedAt.Add(time.Second)
	return *one, nil
}
