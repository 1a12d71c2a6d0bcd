package console

import (
	"encoding/json"
	"html/template"
	"regexp"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/replay"
)

// funcs are the functions of the console's own templates.
var funcs = template.FuncMap{
	"row":         func(l *layout, item any) row { return row{l, item} },
	"lane":        lane,
	"kind":        kindWord,
	"lastanswer":  lastAnswer,
	"attempticon": attemptIcon,
	"sentence":    sentence,
	"saytone":     sayTone,
	"failclass":   failClass,
	"wayclass":    wayClass,
	"replayfill":  replayFill,
	"percentof":   func(share float64) float64 { return share * 100 },
	"secretword":  secretWord,
	"secrettone":  secretTone,
	"bytes":       func(j json.RawMessage) []byte { return j },
}

// row hands a part of a page both the layout and the item that it shows.
type row struct {
	*layout
	Item any
}

// L is the layout.
func (r row) L() *layout { return r.layout }

// L is the layout itself, so that pages and their parts name it alike.
func (l *layout) L() *layout { return l }

func lane(l sender.Lane) string {
	switch l {
	case sender.LaneNew:
		return "few, until it has answered"
	case sender.LaneProbation:
		return "few, since it is slow or failing"
	}
	return "as many as it answers fast"
}

// lastAnswer is what is known of a delivery's last attempt without its attempts.
func lastAnswer(d sender.Delivery) look.Label {
	return look.Answer(d.LastStatusCode, d.LastErrorClass)
}

func attemptIcon(a sender.Attempt) template.HTML {
	s := look.State{Icon: "fail", Tone: "bad", Word: "Failed"}
	switch a.Class {
	case sender.ClassNone:
		s = look.State{Icon: "check", Tone: "ok", Word: "Succeeded"}
	case sender.ClassTimeout, sender.ClassInterrupted:
		s = look.State{Icon: "clock", Tone: "warn", Word: "Failed"}
	}
	return look.Mark(s)
}

var stamped = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// sentence is an explanation of ours, with its times as elements that the script can put
// into local time.
func sentence(s string) template.HTML {
	var b strings.Builder
	for {
		at := stamped.FindStringIndex(s)
		if at == nil {
			return template.HTML(b.String() + look.Escape(s)) //nolint:gosec // escaped
		}
		b.WriteString(look.Escape(s[:at[0]]))
		if t, err := time.Parse(time.RFC3339Nano, s[at[0]:at[1]]); err == nil {
			b.WriteString(string(look.Full(t)))
		} else {
			b.WriteString(look.Escape(s[at[0]:at[1]]))
		}
		s = s[at[1]:]
	}
}

func sayTone(s look.State) string {
	switch s.Tone {
	case "idle":
		return ""
	}
	return s.Tone
}

func failClass(c sender.Class) string {
	if c == sender.ClassInterrupted {
		return "f-idle"
	}
	return "f-warn"
}

func wayClass(way float64) string {
	if way >= .5 {
		return "f-bad"
	}
	return "f-warn"
}

func replayFill(s replay.Status) string {
	switch s {
	case replay.Finished:
		return "f-ok"
	case replay.Cancelled:
		return "f-idle"
	}
	return "f-accent"
}

func secretWord(s sender.SecretState) string {
	switch s {
	case sender.SecretSigning:
		return "In use"
	case sender.SecretWaiting:
		return "Not in use yet"
	}
	return "Ending"
}

func secretTone(s sender.SecretState) string {
	switch s {
	case sender.SecretSigning:
		return "ok"
	case sender.SecretEnding:
		return "warn"
	}
	return ""
}
