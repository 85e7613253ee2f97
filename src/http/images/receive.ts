/** The body of an image request in either form, bounded, as the request that it is. */
import { formBoundary, createMultipartReader } from '../../codecs/bodies/multipart-reader.ts';
import { type ImageOperation, type ImageRequest, readImageForm, readImageJson } from '../../codecs/images/index.ts';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { parseJsonBodyInTurns, receiveBody, receiveWhole, valueLimit } from '../request/body.ts';
import type { Call } from '../gateway.ts';
import type { ArrivingBody } from '../request/arriving-body.ts';

/** Throws a 400 that names the field, 413, or 415 for a form where only JSON is taken. */
export async function receiveImageRequest(call: Call, operation: ImageOperation, body: ArrivingBody): Promise<ImageRequest> {
  const { request, response, config, gateway } = call;
  const { jsonBytes, multipartBytes, bodyMs } = config.limits;
  const { slot, weigh } = body;
  const contentType = request.headers['content-type'];
  const boundary = operation === 'edit' ? formBoundary(contentType) : undefined;
  if (boundary === undefined) {
    if (/^\s*multipart\//i.test(contentType ?? '')) throw unsupported(operation);
    const limits = { maxBytes: jsonBytes, timeoutMs: bodyMs, weigh };
    const bytes = await receiveWhole(request, response, limits, gateway.clock);
    slot.setWeight(bytes.length);
    // `curl -d` sends every body with this type: only one that is no JSON object is really a form.
    const isNamedForm = /^\s*application\/x-www-form-urlencoded/i.test(contentType ?? '');
    if (isNamedForm && !/^\s*\{/.test(bytes.toString('latin1', 0, 64))) throw unsupported(operation);
    const weighed = valueLimit(config.limits, (values, characters) => slot.setWeight(bytes.length, values, characters));
    const { text, json } = await parseJsonBodyInTurns(bytes, weighed, gateway.largeWork);
    return readImageJson(operation, text, json);
  }
  const reader = createMultipartReader(boundary, { maxBytes: multipartBytes });
  const limits = { maxBytes: multipartBytes, timeoutMs: bodyMs, weigh };
  let size = 0;
  await receiveBody(request, response, limits, gateway.clock, (chunk) => {
    size += chunk.length;
    reader.push(chunk);
  });
  slot.setWeight(size);
  return readImageForm(reader.end());
}

function unsupported(operation: ImageOperation): GatewayError {
  const wanted = operation === 'edit' ? 'JSON or multipart/form-data' : 'JSON';
  return new GatewayError('unsupported_media_type', `This endpoint takes ${wanted}.`);
}
