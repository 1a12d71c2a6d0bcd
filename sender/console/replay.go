package console

import (
	"context"
	"net/http"
	"strconv"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

type replaysView struct {
	List  []replay.Replay
	Older string
	First string
}

func (c *Console) replays(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	list, err := c.Replays.List(ctx, replay.Query{After: q.Get("after"), Limit: pageSize})
	if err != nil {
		return view{}, err
	}
	v := replaysView{List: list, First: first(q, "after")}
	if len(list) == pageSize {
		v.Older = older(q, "after", list[pageSize-1].ID)
	}
	return view{title: "Replays", nav: "replays", data: &v}, nil
}

func (c *Console) replay(ctx context.Context, r *http.Request) (view, error) {
	rep, err := c.Replays.Get(ctx, r.PathValue("id"))
	return view{title: "Replay " + rep.ID, nav: "replays", data: &rep}, err
}

type newReplayView struct {
	Filter  filter
	Classes []sender.Class
	// Preview counts what a replay would send; nil: the form was not sent yet.
	Preview *replay.Preview
}

// newReplay shows the form, and the preview once the form was sent.
func (c *Console) newReplay(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	f, err := filterOf(q)
	if err != nil {
		return view{}, err
	}
	if f.Status == "" {
		f.Status = string(sender.StatusDeadLettered)
	}
	v := newReplayView{Filter: f, Classes: classes}
	if q.Get("preview") != "" {
		p, err := c.Replays.Preview(ctx, f.replay())
		if err != nil {
			return view{}, err
		}
		v.Preview = &p
	}
	return view{title: "New replay", nav: "replays", data: &v}, nil
}

func (f *filter) replay() replay.Filter {
	return replay.Filter{
		Status: sender.Status(f.Status), Subscription: f.Subscription, Subscriber: f.Subscriber, EventType: f.Type,
		Since: f.since, Until: f.until, ErrorClass: sender.Class(f.Class),
	}
}

func (c *Console) createReplay(ctx context.Context, r *http.Request) (string, string, error) {
	f, err := filterOf(r.PostForm)
	if err != nil {
		return "", "", err
	}
	n := replay.Request{Filter: f.replay(), Force: r.PostForm.Get("force") != "", By: whoOf(r), Reason: r.PostForm.Get("reason")}
	if text := r.PostForm.Get("rate"); text != "" {
		if n.Rate, err = strconv.ParseFloat(text, 64); err != nil {
			return "", "", badInput("rate: " + strconv.Quote(text) + " is no number: give deliveries a second, or nothing for as fast as there is room")
		}
	}
	made, err := c.Replays.Create(ctx, n)
	return "replays/" + made.ID, "replaying", err
}

// turnReplay pauses, continues or cancels a replay.
func (c *Console) turnReplay(turn func(ctx context.Context, id string) (replay.Replay, error), said string) func(context.Context, *http.Request) (string, string, error) {
	return func(ctx context.Context, r *http.Request) (string, string, error) {
		id := r.PathValue("id")
		_, err := turn(ctx, id)
		return "replays/" + id, said, err
	}
}
