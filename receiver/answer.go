package receiver

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Answer is an HTTP response in plain values.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// AnswerTo returns the HTTP answer to what [Receiver.Receive] returned, for servers other
// than net/http. It equals what [Receiver.Handler] writes, except that Handler heeds
// [Envelope].EmptyAnswer. An error that is not an [*Error] gives 500.
func AnswerTo(res Result, err error) Answer {
	a := Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}}
	if err == nil {
		if answer, is := res.challengeAnswer(); is {
			return answer
		}
		a.Body = []byte(`{"result":"` + string(res) + `"}`)
		return a
	}
	a.Status = http.StatusInternalServerError
	var e *Error
	if errors.As(err, &e) {
		a.Status = e.Status()
		if after := e.RetryAfter(); after > 0 {
			a.Header.Set("Retry-After", strconv.Itoa(int(after/time.Second)))
		}
		if e.Reason == ReasonMethod {
			a.Header.Set("Allow", http.MethodPost)
		}
	}
	a.Body = []byte(`{"error":"` + http.StatusText(a.Status) + `"}`)
	return a
}

// answerTo is AnswerTo for this receiver's sender.
func (r *Receiver[Tx]) answerTo(res Result, err *Error) Answer {
	if err != nil {
		return AnswerTo("", err)
	}
	if e := r.cfg.Envelope; e != nil && e.EmptyAnswer && !res.Challenged() {
		return Answer{Status: http.StatusOK}
	}
	return AnswerTo(res, nil)
}

// writeAnswer writes the Answer of answerTo. The most frequent answers are made once, not
// for each request.
func (r *Receiver[Tx]) writeAnswer(w http.ResponseWriter, res Result, err *Error) {
	body, common := commonAnswers[res]
	if err != nil || !common || r.cfg.Envelope != nil && r.cfg.Envelope.EmptyAnswer {
		r.answerTo(res, err).write(w)
		return
	}
	w.Header()["Content-Type"] = contentTypeJSON
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
}

var (
	contentTypeJSON = []string{"application/json"}
	commonAnswers   = map[Result][]byte{
		Applied: AnswerTo(Applied, nil).Body, Duplicate: AnswerTo(Duplicate, nil).Body, Stale: AnswerTo(Stale, nil).Body, Recorded: AnswerTo(Recorded, nil).Body,
	}
)

func (a Answer) write(w http.ResponseWriter) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	// The client may be gone. The transaction's outcome stands either way, and
	// sending the event again finds it.
	_, _ = w.Write(a.Body)
}
