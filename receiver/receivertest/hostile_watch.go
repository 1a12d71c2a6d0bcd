package receivertest

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// watch stands between the network and the handler.
type watch struct {
	mu     sync.Mutex
	answer func(status int) // told of the answer when it is begun
	drop   bool             // let no answer out

	running sync.RWMutex // read-locked by each call of the handler
	over    bool
}

// end waits until the handler has ended. It is not called again.
func (w *watch) end() {
	w.running.Lock()
	defer w.running.Unlock()
	w.over = true
}

func (w *watch) set(answer func(status int), drop bool) {
	w.mu.Lock()
	w.answer, w.drop = answer, drop
	w.mu.Unlock()
}

func (w *watch) get() (answer func(status int), drop bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answer, w.drop
}

func (h *hostile) watched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.watch.running.RLock()
		defer h.watch.running.RUnlock()
		if h.watch.over {
			panic(http.ErrAbortHandler)
		}
		answer, drop := h.watch.get()
		if answer != nil {
			w = &watchedWriter{ResponseWriter: w, answer: answer}
		}
		next.ServeHTTP(w, r)
		if drop {
			panic(http.ErrAbortHandler) // closes the connection
		}
	})
}

type watchedWriter struct {
	http.ResponseWriter
	answer func(status int)
	begun  bool
}

func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watchedWriter) WriteHeader(status int) {
	if !w.begun && status >= 200 {
		w.begun = true
		w.answer(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.answer(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// answersAfterCommit looks from outside at the very moment when the answer begins.
func (h *hostile) answersAfterCommit() {
	ev := h.event()
	var mu sync.Mutex
	early := false
	h.watch.set(func(status int) {
		if status/100 != 2 {
			return
		}
		// A transaction that is still open may keep readers waiting: that says enough. A slow
		// machine may need a second for what is committed.
		ctx, cancel := context.WithTimeout(context.Background(), min(5*time.Second, h.cfg.Timeout))
		defer cancel()
		n, err := h.subject.Effects(ctx, ev)
		mu.Lock()
		defer mu.Unlock()
		early = err != nil || n == 0
	}, false)
	a := h.insist(ev)
	h.watch.set(nil, false)
	mu.Lock()
	defer mu.Unlock()
	switch n := h.effects(ev); {
	case early:
		h.broken(PromiseCommit, "the answer %d was begun when nobody else could see the effect yet: if the commit fails, the event is lost", a.Status)
	case ok(a) && n == 0:
		h.broken(PromiseCommit, "it was answered with %d, and there is no effect", a.Status)
	}
}

// dropsAnswers lets the handler finish, and closes the connection before its answer
// is out, as a proxy does that restarts.
func (h *hostile) dropsAnswers() {
	ev := h.event()
	h.watch.set(nil, true)
	h.post(h.sender.Request(ev))
	h.watch.set(nil, false)
	h.applied(ev, "delivered, with the answer lost on its way, and delivered again")
}
