package portal

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/replay"
)

const replaysAPage = 20

type replaysView struct {
	List []replay.Replay
	Foot look.Pages
}

func (p *Portal) mine(ctx context.Context) *replay.Owned {
	return p.b.Replays.ForSubscriber(sessionIn(ctx).Subscriber)
}

func (p *Portal) replays(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	list, err := p.mine(ctx).List(ctx, replay.Query{After: q.Get("after"), Limit: replaysAPage + 1})
	if err != nil {
		return view{}, err
	}
	var v replaysView
	if len(list) > replaysAPage {
		list = list[:replaysAPage]
		v.Foot.Next = with(q, "after", list[replaysAPage-1].ID)
	}
	v.List = list
	if q.Get("after") != "" {
		v.Foot.First = with(q, "after", "")
	}
	return view{title: "Sent again", tab: "deliveries", live: true, data: &v}, nil
}

type replayView struct{ replay.Replay }

// Running, Paused and Done say which buttons there are.
func (v *replayView) Running() bool { return v.Status == replay.Running }

// Paused tells whether it can go on.
func (v *replayView) Paused() bool { return v.Status == replay.Paused }

// Share is how much of it is done, from 0 to 1, unless there is More.
func (v *replayView) Share() float64 {
	if v.Matched == 0 {
		return 1
	}
	return float64(v.Admitted+v.Skipped) / float64(v.Matched)
}

func (p *Portal) replay(ctx context.Context, r *http.Request) (view, error) {
	rep, err := p.mine(ctx).Get(ctx, r.PathValue("id"))
	return view{title: "Sent again", tab: "deliveries", live: true, data: &replayView{rep}}, err
}

type newReplayView struct {
	Filter    filter
	Endpoints []choice
	Preview   *replay.Preview // nil: the form was not sent yet
	Once      string          // drawn for this page, see onceID
}

// newReplay shows the form, and the preview once the form was sent.
func (p *Portal) newReplay(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	v := newReplayView{Filter: filterOf(q.Get), Once: rand.Text()}
	asked, err := v.Filter.replay()
	if err != nil {
		return view{}, err
	}
	if v.Endpoints, err = p.choices(ctx, sessionIn(ctx), v.Filter.Endpoint, ""); err != nil {
		return view{}, err
	}
	if q.Get("preview") != "" {
		err := p.count.do(ctx, sessionIn(ctx).Subscriber, func() error {
			preview, err := p.mine(ctx).PreviewSome(ctx, asked)
			v.Preview = &preview
			return err
		})
		if err != nil {
			return view{}, err
		}
	}
	return view{title: "Send again", tab: "deliveries", data: &v}, nil
}

// replay is the filter of a replay: of dead letters alone.
func (f *filter) replay() (replay.Filter, error) {
	since, until, err := f.times()
	return replay.Filter{Status: sender.StatusDeadLettered, Subscription: f.Endpoint, EventType: f.Type, Since: since, Until: until}, err
}

func (p *Portal) createReplay(ctx context.Context, r *http.Request) (string, string, error) {
	f := filterOf(r.PostForm.Get)
	asked, err := f.replay()
	if err != nil {
		return "", "", err
	}
	text := r.PostForm.Get("rate")
	n := replay.Request{
		ID:     onceID("rpl_", sessionIn(ctx).Subscriber, r.PostForm.Get("once"), strings.Join([]string{f.Endpoint, f.Type, f.Since, f.Until, text}, "\n")),
		Filter: asked, By: sessionIn(ctx).By, Reason: "asked for in the portal",
	}
	if text != "" {
		if n.Rate, err = strconv.ParseFloat(text, 64); err != nil {
			return "", "", badInput("At most, a second: " + strconv.Quote(text) + " is no number. Give deliveries a second, or nothing for as fast as there is room.")
		}
	}
	var made replay.Replay
	err = p.count.do(ctx, sessionIn(ctx).Subscriber, func() error {
		made, err = p.mine(ctx).Create(ctx, n)
		return err
	})
	return "replays/" + made.ID, "replaying", err
}

// turnReplay pauses, continues or cancels a replay.
func (p *Portal) turnReplay(turn string) func(context.Context, *http.Request) (string, string, error) {
	return func(ctx context.Context, r *http.Request) (string, string, error) {
		mine, id := p.mine(ctx), r.PathValue("id")
		do := map[string]func(context.Context, string) (replay.Replay, error){"pause": mine.Pause, "continue": mine.Continue, "cancel": mine.Cancel}[turn]
		_, err := do(ctx, id)
		return "replays/" + id, turn, err
	}
}
