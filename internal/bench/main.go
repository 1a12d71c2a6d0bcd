// Command bench measures the whole path: sender and receiver as separate
// processes on loopback, in interleaved rounds, against bare net/http POSTs
// between the same two processes in the same run.
//
//	go run ./internal/bench            all scenarios, five rounds
//	go run ./internal/bench -quick     two short rounds
//	go run ./internal/bench -scenario sqlite-1000
//
// Absolute rates depend on the machine, and on what else it is doing. The ratios
// are what to compare.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// secret is what both processes sign and verify with.
const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// measured is what one run of a sender process prints.
type measured struct {
	Scenario   string             `json:"scenario"`
	Deliveries int                `json:"deliveries"`
	Seconds    float64            `json:"seconds"`
	SenderCPU  float64            `json:"sender_cpu_us"`   // per delivery
	ReceiveCPU float64            `json:"receiver_cpu_us"` // per delivery
	Extra      map[string]float64 `json:"extra,omitempty"`
}

func (m measured) rate() float64 { return float64(m.Deliveries) / m.Seconds }

func main() {
	var (
		role     = flag.String("role", "", "internal: receiver or sender")
		scenario = flag.String("scenario", "", "measure this one alone, beside the baseline")
		target   = flag.String("url", "", "internal: where to post to")
		quick    = flag.Bool("quick", false, "two short rounds")
		rounds   = flag.Int("rounds", 5, "rounds; the medians are shown")
		n        = flag.Int("n", 60_000, "deliveries a round")
		asJSON   = flag.Bool("json", false, "print JSON")
	)
	flag.Parse()
	if *quick {
		*rounds, *n = 2, 20_000
	}
	var err error
	switch *role {
	case "receiver":
		err = receive()
	case "sender":
		err = send(*scenario, *target, *n)
	default:
		err = measure(*scenario, *rounds, *n, *asJSON)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(only string, rounds, n int, asJSON bool) error {
	run := []scenario{scenarios[0]}
	for _, s := range scenarios[1:] {
		if only == "" || s.name == only {
			run = append(run, s)
		}
	}
	if only != "" && len(run) == 1 && only != scenarios[0].name {
		return fmt.Errorf("no scenario is named %q", only)
	}
	all := map[string][]measured{}
	for range rounds {
		for _, s := range run {
			m, err := once(s.name, n)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			all[s.name] = append(all[s.name], m)
			fmt.Fprintf(os.Stderr, "%-14s %8.0f/s\n", s.name, m.rate())
		}
	}
	var table []measured
	for _, s := range run {
		table = append(table, medians(all[s.name]))
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(table)
	}
	fmt.Printf("\n%s, %d cores, %s; medians of %d interleaved rounds of %d deliveries, 1 KiB bodies\n\n",
		cpuModel(), runtime.NumCPU(), runtime.Version(), rounds, n)
	fmt.Println("| scenario | deliveries/s | ÷ bare POSTs | sender CPU µs | receiver CPU µs | |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	for i, m := range table {
		var extra []string
		for _, k := range slices.Sorted(keys(m.Extra)) {
			extra = append(extra, fmt.Sprintf("%s %.2f", k, m.Extra[k]))
		}
		fmt.Printf("| %s | %.0f | %.2f | %.0f | %.0f | %s |\n", run[i].title, m.rate(), m.rate()/table[0].rate(), m.SenderCPU, m.ReceiveCPU, strings.Join(extra, ", "))
	}
	return nil
}

// once runs a scenario with a receiver and a sender process of its own.
func once(name string, n int) (m measured, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	rcv := exec.CommandContext(ctx, self, "-role", "receiver")
	rcv.Stderr = os.Stderr
	stop, err := rcv.StdinPipe()
	if err != nil {
		return m, err
	}
	out, err := rcv.StdoutPipe()
	if err != nil {
		return m, err
	}
	if err := rcv.Start(); err != nil {
		return m, err
	}
	defer func() {
		_ = stop.Close()
		_ = rcv.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return m, err
	}
	url := strings.TrimSpace(line)
	before, err := receiverCPU(ctx, url)
	if err != nil {
		return m, err
	}
	snd := exec.CommandContext(ctx, self, "-role", "sender", "-scenario", name, "-url", url, "-n", fmt.Sprint(n))
	snd.Stderr = os.Stderr
	printed, err := snd.Output()
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(printed, &m); err != nil {
		return m, err
	}
	after, err := receiverCPU(ctx, url)
	m.ReceiveCPU = (after - before) / float64(m.Deliveries)
	return m, err
}

func receiverCPU(ctx context.Context, url string) (us float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/cpu", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(b), &us)
	return us, err
}

// cpuTime is what this process has used, in microseconds.
func cpuTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec)*1e6 + float64(u.Utime.Usec+u.Stime.Usec)
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": \t")
		}
	}
	return runtime.GOARCH
}
