package console

import (
	"context"
	"net/http"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

type noticesView struct {
	Kind  string
	All   bool // those that were acknowledged, too
	Kinds []sender.NoticeKind
	List  []sender.Notice
	Older string
	First string
}

func (c *Console) notices(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	v := noticesView{
		Kind: q.Get("kind"), All: q.Get("all") != "",
		Kinds: []sender.NoticeKind{sender.NoticeDeadLettered, sender.NoticeFailing, sender.NoticeDisabled, sender.NoticeNetwork, sender.NoticeProxy, sender.NoticeReplayFinished},
	}
	page, next, err := c.History.Notices(ctx, history.NoticeQuery{Kind: sender.NoticeKind(v.Kind), Unread: !v.All, Cursor: q.Get("cursor"), Limit: pageSize})
	if err != nil {
		return view{}, err
	}
	v.List, v.Older, v.First = page, older(q, "cursor", next), first(q, "cursor")
	return view{title: "Notices", nav: "notices", data: &v}, nil
}

func (c *Console) acknowledge(ctx context.Context, r *http.Request) (string, string, error) {
	_, err := c.History.Acknowledge(ctx, r.PathValue("id"), "")
	return "notices", "acknowledged", err
}
