// A client in TypeScript, for the compiler alone: what is wrong here is an error of types.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8080", headers: { Authorization: "Bearer …" } });

export async function subscriber(): Promise<string | undefined> {
  const made = await client.POST("/subscribers", { body: { name: "Ada", attributes: { plan: "pro" } } });
  if (made.error) {
    throw new Error(made.error.detail);
  }
  return made.data.signing_secret;
}

// A job's input and result have the types of the kinds.
export async function jobs(): Promise<number> {
  await client.POST("/jobs", { body: { kind: "replay", input: { status: "dead_lettered", dry_run: true } } });
  const imports: components["schemas"]["NewJob"] = { kind: "import_subscribers", input: { subscribers: [{ name: "Ada" }] } };
  await client.POST("/jobs", { body: imports });
  // @ts-expect-error: no kind has such an input
  const bad: components["schemas"]["NewJob"] = { kind: "replay", input: { nonsense: 1 } };
  await client.POST("/jobs", { body: bad });
  const job = await client.GET("/jobs/{id}", { params: { path: { id: "job_1" } } });
  const result = job.data?.result;
  return result && !Array.isArray(result) && "matched" in result ? result.matched : 0;
}

export async function deliveries(): Promise<string[]> {
  const page = await client.GET("/deliveries", { params: { query: { status_code: 410, error_class: "status", limit: 200 } } });
  // @ts-expect-error: there is no such filter
  await client.GET("/deliveries", { params: { query: { subscriber: "sub_1" } } });
  return (page.data?.data ?? []).filter((d) => d.status === "dead_lettered").map((d) => d.event.object.id);
}
