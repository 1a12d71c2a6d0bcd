package defect

// ofJobs are defects in claims, submissions and outcomes of jobs of which nobody knows
// whether they were committed.
var ofJobs = []Defect{
	{
		Name: "the jobs of a claim whose answer was lost wait for their leases",
		File: "sender/jobs/worker.go", Tests: []string{"./sender/jobs"}, Run: "^TestClaimWhoseAnswerWasLost$",
		Old: "w.doubts = append(w.doubts, doubt{token, before, w.j.cfg.Now().Add(w.j.cfg.Lease)})", New: "w.doubts = nil",
	},
	{
		Name: "a claim whose answer was lost costs a try",
		File: "sender/jobs/decide.go", Tests: []string{"./sender/jobs"}, Run: "^TestClaimWhoseAnswerWasLost$",
		Old: "r.Status, r.Due, r.Tries, r.StartedAt = before.Status, before.Due, before.Tries, before.StartedAt", New: "r.Status, r.Due, r.StartedAt = before.Status, before.Due, before.StartedAt",
	},
	{
		Name: "a worker that stops leaves the claims in doubt to their leases",
		File: "sender/jobs/worker.go", Tests: []string{"./sender/jobs"}, Run: "^TestClaimWhoseAnswerWasLost$",
		Old: "\tw.claiming(ctx, soft, hard)\n\tw.giveBack(hard)\n", New: "\tw.claiming(ctx, soft, hard)\n",
	},
	{
		Name: "another's claim is taken for the one in doubt",
		File: "sender/jobs/doubt.go", Tests: []string{"./sender/jobs"}, Run: "^TestClaimWhoseAnswerWasLost$",
		Old: "case r.Status != Running || r.Token != d.token:", New: "case r.Status != Running:",
	},
	{
		Name: "an outcome whose answer was lost counts as not stored",
		File: "sender/jobs/attempt.go", Tests: []string{"./sender/jobs"}, Run: "^TestOutcomeWhoseAnswerWasLost$",
		Old: `errors.Is(failed, errStored) && r.ID != ""`, New: "false",
	},
	{
		Name: "a repeated submission is judged anew",
		File: "sender/jobs/jobs.go", Tests: []string{"./sender/jobs"}, Run: "^TestRepeatIsNotJudgedAnew$",
		Old: "err != nil || found {\n\t\t\treturn s.answered", New: "err != nil {\n\t\t\treturn s.answered",
	},
}
