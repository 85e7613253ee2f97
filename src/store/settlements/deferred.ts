/**
 * What becomes of something that waits to be written. Awaited like a promise, and only then is there one: most rows are written
 * without anybody waiting for them, and a failure that nobody waits for is told elsewhere.
 */
export class Deferred<T> implements PromiseLike<T> {
  #end: { readonly value: T } | { readonly error: unknown } | undefined;
  #waiters: PromiseWithResolvers<T> | undefined;

  resolve(value: T): void {
    this.#end ??= { value };
    this.#waiters?.resolve(value);
  }

  reject(error: unknown): void {
    this.#end ??= { error };
    this.#waiters?.reject(error);
  }

  // biome-ignore lint/suspicious/noThenProperty: this is what makes it awaitable
  then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#promise().then(onValue, onError);
  }

  #promise(): Promise<T> {
    if (this.#waiters === undefined) {
      this.#waiters = Promise.withResolvers();
      if (this.#end === undefined) return this.#waiters.promise;
      if ('value' in this.#end) this.#waiters.resolve(this.#end.value);
      else this.#waiters.reject(this.#end.error);
    }
    return this.#waiters.promise;
  }
}
