// A hook on the SDK that answers what its parent says: spec.answer, or spec.finally while the parent is being deleted. It refuses a parent with
// spec.refuse, and counts in an answer without a status the ConfigMaps that it is shown.

import { composite, Reject, serve } from "../../../sdk/typescript/dist/index.js";

function sync({ parent, children, finalizing }) {
  const spec = parent.spec ?? {};
  if (spec.refuse) {
    throw new Reject("TooLate", spec.refuse);
  }
  return { status: { seen: Object.keys(children["ConfigMap.v1"]).length }, ...spec[finalizing ? "finally" : "answer"] };
}

await serve(composite({ sync, finalize: sync }));
