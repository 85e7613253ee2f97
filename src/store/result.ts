/** A clean refusal is a value: the caller must look before it can use the answer. A broken store throws `StoreError` instead. */
export type Result<Value, Refusal> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly refusal: Refusal };

export function done<Value>(value: Value): { readonly ok: true; readonly value: Value } {
  return { ok: true, value };
}

export function refused<Refusal>(refusal: Refusal): { readonly ok: false; readonly refusal: Refusal } {
  return { ok: false, refusal };
}

/** An argument that was refused; nothing was changed. `field` is the path of the offending field. */
export interface Invalid {
  readonly reason: 'invalid';
  readonly field: string;
  readonly message: string;
}

export function invalid(field: string, message: string): { readonly ok: false; readonly refusal: Invalid } {
  return refused({ reason: 'invalid', field, message });
}
