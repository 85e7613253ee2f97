/** The video tasks of one simulator: made once, then carried on by the clock alone. Knows no vendor's words. */
import type { JsonObject } from './json.ts';
import type { VideoCourse } from './script.ts';

export type VideoState = 'queued' | 'running' | 'succeeded' | 'failed';

export interface VideoJob {
  readonly id: string;
  readonly request: JsonObject;
  readonly createdMs: number;
  readonly course: Required<VideoCourse>;
}

export interface VideoJobs {
  create(id: string, request: JsonObject, course?: VideoCourse): VideoJob;
  find(id: string): VideoJob | undefined;
  stateOf(job: VideoJob): VideoState;
}

export function createVideoJobs(now: () => number, usual: VideoCourse): VideoJobs {
  const jobs = new Map<string, VideoJob>();
  return {
    create(id, request, course = {}) {
      const job: VideoJob = { id, request, createdMs: now(), course: { ...COURSE, ...usual, ...course } };
      jobs.set(id, job);
      return job;
    },
    find: (id) => jobs.get(id),
    stateOf(job) {
      const age = now() - job.createdMs;
      if (age < job.course.queueMs) return 'queued';
      return age < job.course.queueMs + job.course.runMs ? 'running' : job.course.outcome;
    },
  };
}

const COURSE: Required<VideoCourse> = {
  queueMs: 300,
  runMs: 900,
  outcome: 'succeeded',
  code: 'InternalServiceError',
  message: 'The generation failed.',
};

/** A tiny MP4: a file type box, an empty media box and the task's name, so that a result link opens. */
export function tinyVideo(id: string): Buffer {
  const box = (type: string, data: Buffer) => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(8 + data.length);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, data]);
  };
  const brand = Buffer.concat([Buffer.from('isom', 'latin1'), Buffer.alloc(4), Buffer.from('isommp41', 'latin1')]);
  return Buffer.concat([box('ftyp', brand), box('free', Buffer.from(id)), box('mdat', Buffer.alloc(16))]);
}
